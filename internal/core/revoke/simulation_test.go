package revoke

import (
	"flag"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

var (
	most   = flag.Int("members", 20_000, "of TestCrowd")
	trials = flag.Int("trials", 1, "how often TestDeathsAtAnyEvent kills at any event; 22 are 100,000 revokes")
)

// checkAll checks a world without failures: each has delivered, and every link has carried one
// notice in each direction.
func checkAll(t *testing.T, w *world) (hops int) {
	t.Helper()
	n := len(w.members)
	for rank := range w.members {
		if !w.delivered[rank] || !w.members[rank].settled || bits.OnesCount64(uint64(w.sent[rank])) != Degree(n) {
			t.Fatalf("rank %d of %d has delivered: %v, is settled: %v, has sent to %x", rank, n, w.delivered[rank], w.members[rank].settled, w.sent[rank])
		}
		hops = max(hops, w.hops[rank])
	}
	if w.messages != n*Degree(n) {
		t.Fatalf("%d members have sent %d notices", n, w.messages)
	}
	return hops
}

// TestNoticeEverywhere: without failures all deliver, within Diameter hops where all messages take
// equally long, and each link carries one notice in each direction, whoever revokes, also several.
func TestNoticeEverywhere(t *testing.T) {
	check := func(n int, seed uint64) {
		r := dice(seed)
		w := newWorld(n)
		by := uint32(r.IntN(n))
		w.revoke(by, 0)
		if err := w.run(); err != nil {
			t.Fatal(err)
		}
		hops := checkAll(t, w)
		if hops > Diameter(n) || hops > logarithm(n)+1 {
			t.Fatalf("%d members: %d hops, at most %d", n, hops, Diameter(n))
		}
		all, _, _ := distances(n, by, nobody)
		for rank, d := range all {
			if w.hops[rank] != int(d) {
				t.Fatalf("rank %d of %d: %d hops, but a distance of %d", rank, n, w.hops[rank], d)
			}
			if got, _ := w.members[rank].Notice(); got.By != by || got.Reason != by+1 {
				t.Fatalf("rank %d of %d: %+v", rank, n, got)
			}
		}
		w = newWorld(n)
		w.gap, w.latency = 3, func() int64 { return 1 + r.Int64N(1000) }
		for range 1 + r.IntN(3) {
			w.revoke(uint32(r.IntN(n)), r.Int64N(2000))
		}
		if err := w.run(); err != nil {
			t.Fatal(err)
		}
		checkAll(t, w)
		if seed == 0 && n&(n-1) == 0 || n >= 1000 {
			t.Logf("%7d members: degree %2d, %8d notices, %2d hops (ceil(log2 n) is %d)", n, Degree(n), w.messages, hops, logarithm(n))
		}
	}
	for n := 1; n <= exactSize; n++ {
		for seed := range uint64(10) {
			check(n, seed)
		}
	}
	for _, n := range append(largeSizes(exactSize, 1000, 10), 1024, searchSize-1, searchSize) {
		check(n, uint64(n))
	}
}

// TestOrderOfSending: where members send first to those that are reached through them, the notice is
// everywhere earlier than where they begin with the longest links.
func TestOrderOfSending(t *testing.T) {
	for _, n := range []int{16, 37, 64, 100, 1000, 1024, 4095} {
		for _, gap := range []int64{50, 200, 500} {
			var last [2]int64
			hops := 0
			for i := range last {
				w := newWorld(n)
				w.isPlain, w.gap = i == 1, gap
				w.revoke(uint32(n/3), 0)
				if err := w.run(); err != nil {
					t.Fatal(err)
				}
				last[i] = w.last
				if i == 0 {
					hops = checkAll(t, w)
				}
			}
			t.Logf("%5d members, %.2f of a message's time from one sent to the next: everywhere within %5.2f, and with the longest links first %5.2f; %d hops",
				n, float64(gap)/1000, float64(last[0])/1000, float64(last[1])/1000, hops)
			if last[0] >= last[1] || hops > logarithm(n)+1 {
				t.Errorf("%d members, gap %d: everywhere after %d, not before %d, in %d hops", n, gap, last[0], last[1], hops)
			}
		}
	}
}

// TestDeathsAtAnyEvent: an adversary kills Degree-1 members of its choice at once, at any event, also
// while a member is in the middle of sending. If anybody that lives is notified, all that live are.
// What the dead had on its way is lost, or arrives, or either.
func TestDeathsAtAnyEvent(t *testing.T) {
	runs, most := 0, 0
	check := func(n, event int, r *rand.Rand, choice int, fate func(from, to uint32) bool) bool {
		w := newWorld(n)
		w.gap, w.latency, w.isLost = 10, func() int64 { return 1 + r.Int64N(100) }, fate
		w.revoke(uint32(r.IntN(n)), 0)
		if r.IntN(4) == 0 {
			w.revoke(uint32(r.IntN(n)), r.Int64N(200))
		}
		var killed []uint32
		w.before = func() {
			if w.taken == event && killed == nil {
				killed = w.chosen(choice, r)
				w.kill(killed)
			}
		}
		if err := w.run(); err != nil {
			t.Fatal(err)
		}
		runs++
		if rank, is := w.missed(); is {
			t.Fatalf("%d members, without %v from event %d on: rank %d is not notified", n, killed, event, rank)
		}
		for rank, h := range w.hops {
			if !w.isDead[rank] {
				most = max(most, h-logarithm(n))
			}
		}
		return w.taken > event
	}
	fates := func(r *rand.Rand) []func(from, to uint32) bool {
		return []func(from, to uint32) bool{
			func(uint32, uint32) bool { return true },
			func(uint32, uint32) bool { return false },
			func(uint32, uint32) bool { return r.IntN(2) == 0 },
		}
	}
	for trial := range *trials {
		r := dice(uint64(trial))
		for n := 2; n <= exactSize; n++ {
			for event := 0; ; event++ {
				if !check(n, event, r, r.IntN(choices), fates(r)[r.IntN(3)]) {
					break
				}
				if n > 24 { // not every event, for the time that takes
					event += r.IntN(n / 8)
				}
			}
		}
		for _, n := range largeSizes(exactSize, 500, 5) {
			for range 10 {
				check(n, r.IntN(2*n*Degree(n)), r, r.IntN(choices), fates(r)[r.IntN(3)])
			}
		}
	}
	t.Logf("%d runs; notices of at most ceil(log2 n) %+d hops were the first", runs, most)
}

// choices are the ways in which an adversary that sees everything chooses.
const choices = 7

// chosen returns Degree-1 members to kill.
func (w *world) chosen(choice int, r *rand.Rand) []uint32 {
	n := len(w.members)
	if choice < 5 {
		return victims(n, r)[choice]
	}
	// Those that are notified, or those that are not, by which the others would have to be reached:
	// the neighbours of one side that are on the other.
	var set []uint32
	take := func(rank uint32) {
		if len(set) < Degree(n)-1 && !slices.Contains(set, rank) {
			set = append(set, rank)
		}
	}
	for _, rank := range r.Perm(n) {
		isNotified := w.hops[rank] >= 0
		if isNotified == (choice == 5) {
			for to := range Neighbours(n, uint32(rank), 0) {
				if (w.hops[to] >= 0) != isNotified {
					take(uint32(rank))
				}
			}
		}
	}
	for len(set) < Degree(n)-1 {
		take(uint32(r.IntN(n)))
	}
	return set
}

// TestAgainstFlood: with members that are dead from the beginning, however many, those deliver that a
// search of the graph finds, after as many hops.
func TestAgainstFlood(t *testing.T) {
	isCut := 0
	for seed := range uint64(3000) {
		r := dice(seed)
		n := 1 + r.IntN(60)
		if seed%100 == 0 {
			n = 1 + r.IntN(600)
		}
		w := newWorld(n)
		from := uint32(r.IntN(n))
		w.revoke(from, 0)
		var dead []uint32
		for rank := range uint32(n) {
			if rank != from && r.IntN(10) < int(seed%10) {
				dead = append(dead, rank)
			}
		}
		w.kill(dead)
		if err := w.run(); err != nil {
			t.Fatal(err)
		}
		want, reached, _ := distances(n, from, func(v uint32) bool { return w.isDead[v] })
		for rank := range want {
			if int(want[rank]) != w.hops[rank] || w.delivered[rank] != (want[rank] >= 0) {
				t.Fatalf("rank %d of %d without %v: %d hops, want %d", rank, n, dead, w.hops[rank], want[rank])
			}
		}
		if reached < n-len(dead) {
			isCut++
		}
	}
	if isCut == 0 {
		t.Error("no graph was cut")
	}
}

// crowd is a large world in rounds, with a byte a member.
type crowd struct {
	n      int
	states []uint8
}

const (
	isIdle uint8 = iota
	isNext       // its first notice arrives in the next round
	isRevoked
	isGone
)

// step gives a member a notice, or has it revoke.
func (c *crowd) step(rank uint32, in Input, out *Output) {
	m := formedMember(rank, c.n)
	if c.states[rank] != isIdle {
		m.state = revoked
	}
	out.Reset()
	m.Step([]Input{in}, out)
}

// run has a member revoke, and returns how many have delivered, the notices, and the hops.
func (c *crowd) run(by uint32) (delivered, messages, hops int, err error) {
	type first struct{ rank, from uint32 }
	notice := Notice{Of: Identity{Life: life}, By: by}
	bytes := notice.Append(nil)
	now := []first{{by, by}}
	var out, none Output
	for round := 0; len(now) > 0; round++ {
		hops = round
		var next []first
		for _, f := range now {
			in := Input{Kind: Message, From: f.from, Bytes: bytes}
			if round == 0 {
				in = Input{Kind: Revoke, From: by}
			}
			c.states[f.rank] = isIdle
			c.step(f.rank, in, &out)
			c.states[f.rank] = isRevoked
			if !out.Delivered || len(out.Sends) != Degree(c.n) || out.Refused > 0 {
				return 0, 0, 0, fmt.Errorf("rank %d: %+v", f.rank, out)
			}
			delivered++
			messages += len(out.Sends)
			for _, s := range out.Sends {
				switch c.states[s.To] {
				case isIdle:
					c.states[s.To] = isNext
					next = append(next, first{s.To, f.rank})
				case isNext, isRevoked:
					c.step(s.To, Input{Kind: Message, From: f.rank, Bytes: s.Bytes}, &none)
					if none.Delivered || len(none.Sends) > 0 || none.Refused > 0 {
						return 0, 0, 0, fmt.Errorf("rank %d, a duplicate: %+v", s.To, none)
					}
				}
			}
		}
		now = next
	}
	return delivered, messages, hops, nil
}

// TestCrowd: the same for many members: without failures, and without Degree-1 of an adversary's choice.
// -members 1000000 takes half a minute.
func TestCrowd(t *testing.T) {
	r := dice(9)
	for n := *most; n > 4; n /= 5 {
		sets := append([][]uint32{nil}, victims(n, r)...)
		if n > 200_000 { // for the time that takes
			sets = sets[:3]
		}
		for _, set := range sets {
			c := &crowd{n: n, states: make([]uint8, n)}
			for _, v := range set {
				c.states[v] = isGone
			}
			by := uint32(r.IntN(n))
			for c.states[by] == isGone {
				by = (by + 1) % uint32(n)
			}
			delivered, messages, hops, err := c.run(by)
			living := n - len(set)
			if err != nil || delivered != living || messages != living*Degree(n) {
				t.Fatalf("%d members without %v: %d have delivered, %d notices, %v", n, set, delivered, messages, err)
			}
			if bound := logarithm(n) + 1; hops > bound || set == nil && hops > Diameter(n) {
				t.Fatalf("%d members without %v: %d hops, at most %d, and %d without failures", n, set, hops, bound, Diameter(n))
			}
			t.Logf("%8d members, %2d dead: %9d notices, one a link and direction, in %2d hops (ceil(log2 n) is %d)", n, len(set), messages, hops, logarithm(n))
		}
	}
}
