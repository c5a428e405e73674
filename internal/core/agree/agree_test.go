package agree

import (
	"errors"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var agreements = flag.Int("agreements", 2000, "how many agreements TestDeathsAtEveryEvent simulates")

// TestAgreement: whoever dies, at whatever moment, and in whatever order messages arrive, the
// members that decide agree, and all survivors decide.
func TestAgreement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGroup(rapid.IntRange(1, 12).Draw(t, "members"), rapid.IntRange(1, 3).Draw(t, "agreements"))
		deaths := rapid.IntRange(0, len(g.members)).Draw(t, "deaths")
		if err := play(g, deaths, func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(t, what) }); err != nil {
			t.Fatal(err)
		}
	})
}

// play runs a group to its end; choose returns a number below n.
func play(g *group, deaths int, choose func(n int, what string) int) error {
	n := len(g.members)
	dies := func() int {
		if deaths == 0 || choose(8, "dies in it") > 0 {
			return -1
		}
		deaths--
		return choose(3, "messages before")
	}
	for {
		var can []func() error
		for rank, c := range g.members {
			if number := int(c.Number()) - 1; !g.isDead[rank] && number < g.agreed && !c.HasStarted() {
				can = append(can, func() error { return g.start(rank, ^uint64(1<<choose(64, "flag")), dies()) })
			}
		}
		for i := range g.flight {
			can = append(can, func() error { return g.deliver(i, dies()) })
		}
		for _, p := range g.unreported() {
			can = append(can, func() error { return g.report(p[0], p[1], dies()) })
		}
		if len(can) == 0 {
			return g.finished()
		}
		if deaths > 0 && choose(10, "death") == 0 {
			deaths--
			g.kill(choose(n, "who"), func() bool { return choose(2, "arrives") == 0 })
			continue
		}
		if choose(10, "hearsay") == 0 { // somebody finds out who does not have to
			rank, dead := choose(n, "who"), choose(n, "of whom")
			if g.isDead[dead] && !g.isDead[rank] {
				if err := g.report(rank, dead, -1); err != nil {
					return err
				}
				continue
			}
		}
		if err := can[choose(len(can), "event")](); err != nil {
			return err
		}
	}
}

// TestDeathsAtEveryEvent simulates many agreements of up to 40 members: -agreements says how many.
func TestDeathsAtEveryEvent(t *testing.T) {
	messages, deaths, done := 0, 0, 0
	for seed := uint64(0); done < *agreements; seed++ {
		r := rand.New(rand.NewPCG(seed, 19))
		n := 1 + r.IntN(1+r.IntN(40))
		g := newGroup(n, 1+r.IntN(3))
		if err := play(g, r.IntN(n+1), func(n int, _ string) int { return r.IntN(n) }); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		done += g.agreed
		for rank, is := range g.isDead {
			messages += g.sent[rank]
			if is {
				deaths++
			}
		}
	}
	t.Logf("%d agreements with %d deaths, %d messages", done, deaths, messages)
}

// TestCost: without failures a member sends at most 2 log2(n) + 3 messages an agreement, and all
// together five on each edge of the tree: Ack, Lock, Ack, Commit and Ack.
func TestCost(t *testing.T) {
	for _, n := range []int{1, 2, 3, 16, 17, 64, 1000} {
		g := newGroup(n, 1)
		for rank := range n {
			if err := g.start(rank, uint64(rank)|1, -1); err != nil {
				t.Fatal(err)
			}
		}
		for len(g.flight) > 0 {
			if err := g.deliver(0, -1); err != nil {
				t.Fatal(err)
			}
		}
		if err := g.finished(); err != nil {
			t.Fatal(err)
		}
		logarithm, total := 0, 0
		for 1<<logarithm < n {
			logarithm++
		}
		for rank, k := range g.sent {
			if total += k; k > 2*logarithm+3 {
				t.Errorf("%d members: rank %d sends %d messages", n, rank, k)
			}
		}
		if total != 5*(n-1) {
			t.Errorf("%d members send %d messages", n, total)
		}
	}
}

// TestExpelled: who is held dead is notified when it speaks, and says nothing more.
func TestExpelled(t *testing.T) {
	g := newGroup(3, 1)
	var out Output
	g.members[0].Step(0, []Input{{Kind: Dead, Rank: 2}, {Kind: Start}}, &out)
	g.members[2].Step(0, []Input{{Kind: Start}}, &out)
	last := out.Sends[len(out.Sends)-1]
	out.Reset()
	g.members[0].Step(0, []Input{{Kind: Message, Rank: 2, Bytes: last.Bytes}}, &out)
	if len(out.Sends) != 1 || out.Sends[0].To != 2 {
		t.Fatalf("%+v", out)
	}
	expels := out.Sends[0].Bytes
	out.Reset()
	g.members[2].Step(0, []Input{{Kind: Message, Rank: 0, Bytes: expels}, {Kind: Dead, Rank: 1}, {Kind: Dead, Rank: 0}}, &out)
	if !out.Expelled || len(out.Decided)+len(out.Sends) != 0 {
		t.Errorf("%+v", out)
	}
}

// TestAnswersToTheExpelled: a member that is held dead, or that speaks to one that is gone,
// is answered so, and again where that was lost, but not for ever.
func TestAnswersToTheExpelled(t *testing.T) {
	for name, in := range map[string]Input{"expelled": {Kind: Dead, Rank: 2}, "gone": {Kind: Quit}} {
		g := newGroup(3, 1)
		var out Output
		g.members[0].Step(0, []Input{in}, &out)
		g.members[2].Step(0, []Input{{Kind: Dead, Rank: 0}, {Kind: Dead, Rank: 1}, {Kind: Start}}, &out)
		g.members[1].Step(0, []Input{{Kind: Start}}, &out)
		from := map[uint32][]byte{1: PingMessage(), 2: PingMessage()}
		for _, s := range out.Sends {
			from[2] = s.Bytes
		}
		answers := func(rank uint32) (n int) {
			for range 1000 {
				out.Reset()
				g.members[0].Step(0, []Input{{Kind: Message, Rank: rank, Bytes: from[rank]}}, &out)
				n += len(out.Sends)
			}
			return n
		}
		if n := answers(2); n != mostDismissals {
			t.Errorf("%s: %d answers, want %d", name, n, mostDismissals)
		}
		if n := answers(1); name == "gone" && n != mostDismissals {
			t.Errorf("%s: %d answers to another, want %d", name, n, mostDismissals)
		}
	}
}

// TestQuit: who takes no more part answers so, also what came before, and counts as dead.
func TestQuit(t *testing.T) {
	for at := range 20 { // messages before it quits
		testQuit(t, at)
	}
}

func testQuit(t *testing.T, at int) {
	for quits := range uint32(5) {
		g := newGroup(5, 1)
		var flight []flying
		decided := make([]*Decision, 5)
		step := func(rank uint32, in Input) {
			var out Output
			g.members[rank].Step(0, []Input{in}, &out)
			for _, s := range out.Sends {
				flight = append(flight, flying{rank, s.To, s.Bytes})
			}
			for _, w := range out.Watch { // as who reports deaths does
				flight = append(flight, flying{rank, w, PingMessage()})
			}
			for i := range out.Decided {
				decided[rank] = &out.Decided[i]
			}
			if out.Expelled != (rank == quits && in.Kind == Quit) {
				t.Fatalf("rank %d: expelled: %v", rank, out.Expelled)
			}
		}
		for rank := range uint32(5) {
			if rank != quits {
				step(rank, Input{Kind: Start, Flags: 1})
			}
		}
		for k := 0; k <= at || len(flight) > 0; k++ {
			if k == at {
				step(quits, Input{Kind: Quit})
			}
			if len(flight) == 0 {
				continue
			}
			f := flight[0]
			flight = flight[1:]
			step(f.to, Input{Kind: Message, Rank: f.from, Bytes: f.bytes})
		}
		for rank, d := range decided {
			if uint32(rank) != quits && (d == nil || !slices.Equal(d.Failed, []uint32{quits})) {
				t.Errorf("without rank %d after %d messages, rank %d decides %+v", quits, at, rank, d)
			}
		}
	}
}

// TestDisturbed: members that take part but have not started find out about a death.
func TestDisturbed(t *testing.T) {
	g := newGroup(7, 1)
	disturbed := make([]bool, 7)
	var flight []flying
	step := func(rank int, in Input) {
		var out Output
		g.members[rank].Step(0, []Input{in}, &out)
		disturbed[rank] = disturbed[rank] || out.Disturbed
		for _, s := range out.Sends {
			flight = append(flight, flying{uint32(rank), s.To, s.Bytes})
		}
		g.watches[rank] = append(g.watches[rank], out.Watch...)
	}
	for rank := range 7 {
		step(rank, Input{Kind: Open})
	}
	const dead = 5
	for rank, all := range g.watches {
		if rank != dead && slices.Contains(all, dead) {
			step(rank, Input{Kind: Dead, Rank: dead})
		}
	}
	for len(flight) > 0 {
		f := flight[0]
		flight = flight[1:]
		if f.to != dead {
			step(int(f.to), Input{Kind: Message, Rank: f.from, Bytes: f.bytes})
		}
	}
	for rank, is := range disturbed {
		if !is && rank != dead {
			t.Errorf("rank %d does not know", rank)
		}
	}
}

// TestLate: members find out who has not started.
func TestLate(t *testing.T) {
	const n = 12
	var flight []flying
	members := make([]*Core, n)
	late := []uint32{5, 11}
	for rank := range members {
		var err error
		if members[rank], err = New(Config{Rank: uint32(rank), Size: n, SlowAfter: 1}); err != nil {
			t.Fatal(err)
		}
	}
	step := func(rank int, in ...Input) {
		var out Output
		members[rank].Step(members[rank].Deadline(), in, &out)
		for _, s := range out.Sends {
			flight = append(flight, flying{uint32(rank), s.To, s.Bytes})
		}
	}
	deliver := func() {
		for len(flight) > 0 {
			f := flight[0]
			flight = flight[1:]
			if slices.Contains(late, f.to) { // its messages wait
				continue
			}
			var out Output
			members[f.to].Step(0, []Input{{Kind: Message, Rank: f.from, Bytes: f.bytes}}, &out)
			for _, s := range out.Sends {
				flight = append(flight, flying{f.to, s.To, s.Bytes})
			}
		}
	}
	for rank, c := range members {
		if !slices.Contains(late, uint32(rank)) {
			var out Output
			c.Step(0, []Input{{Kind: Start}}, &out)
			for _, s := range out.Sends {
				flight = append(flight, flying{uint32(rank), s.To, s.Bytes})
			}
		}
	}
	deliver()
	for range 5 { // as many as the tree is deep
		for rank := range members {
			if !slices.Contains(late, uint32(rank)) {
				step(rank)
			}
		}
		deliver()
	}
	for rank, c := range members {
		if !slices.Contains(late, uint32(rank)) && !slices.Equal(c.Late(), late) {
			t.Errorf("rank %d names %v", rank, c.Late())
		}
	}
}

// TestConfig: places that cannot be are refused.
func TestConfig(t *testing.T) {
	for _, c := range []Config{{}, {Rank: 2, Size: 2}, {Size: 1 << 30}, {Size: 1, SlowAfter: -1}} {
		if _, err := New(c); !errors.Is(err, errConfig) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
