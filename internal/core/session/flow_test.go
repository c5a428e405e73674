package session

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// fabricLink is the link of the trials: packets of 1500 bytes at 200 Mbit/s, in
// a queue of 50 ms.
func fabricLink(seed uint64) *dumbbell {
	return &dumbbell{
		rng: rand.New(rand.NewPCG(seed, 3)), each: 60 * time.Microsecond, room: 50 * time.Millisecond,
	}
}

// TestJudge: what a round reports moves the window by these rules. The delay's
// limit is 4 ms at a window of 64, and 11.5 ms at one of 16; more than 12 ms are
// long.
func TestJudge(t *testing.T) {
	const ms = time.Millisecond
	for _, row := range []struct {
		name   string
		before flow
		delay  time.Duration
		want   flow // size, start, byLoss, tested, back and rounds alone
	}{
		{"it doubles at the start", flow{size: 64, start: true}, ms, flow{size: 128, start: true}},
		{"no further than to the limit", flow{size: 64, start: true}, 3 * ms, flow{size: 85, start: true}},
		{"no further than to W", flow{size: 200, start: true}, ms, flow{size: 256, start: true}},
		{"then it adds", flow{size: 64}, ms, flow{size: 66}},
		{"a delay ends the start", flow{size: 64, start: true}, 8 * ms, flow{size: 48, back: 64}},
		{"it cuts by half of what is too much", flow{size: 64}, 8 * ms, flow{size: 48, back: 64}},
		{"by one at the least", flow{size: 64}, 4*ms + 1, flow{size: 63, back: 64}},
		{"and remembers where it began", flow{size: 48, back: 64}, 10 * ms, flow{size: 42, back: 64}},
		{"a short delay ends a series of cuts", flow{size: 48, back: 64, rounds: 3}, 4 * ms, flow{size: 50}},
		{"not below a burst", flow{size: 17, back: 64}, 40 * ms, flow{size: 16, back: 64}},
		{"a burst, a long delay", flow{size: 16, back: 64}, 40 * ms, flow{size: 16, back: 64, rounds: 1}},
		{"four times", flow{size: 16, back: 64, rounds: 3}, 40 * ms, flow{size: 64, byLoss: true, start: true}},
		{"four times not so long", flow{size: 16, back: 64, rounds: 3}, 12 * ms, flow{size: 16, back: 64}},
		{"a burst, which it never was more than", flow{size: 16, rounds: 9}, 40 * ms, flow{size: 16, back: 16, rounds: 10}},
		{"nothing but repaired chunks", flow{size: 32, back: 64}, 0, flow{size: 32, back: 64}},
		{"by loss it doubles first", flow{size: 32, byLoss: true, start: true}, 40 * ms, flow{size: 64, byLoss: true, start: true, rounds: 1}},
		{"by loss, repaired chunks alone", flow{size: 32, byLoss: true, start: true}, 0, flow{size: 64, byLoss: true, start: true, rounds: 1}},
		{"by loss, as CUBIC a second after a cut", flow{size: 70, byLoss: true, cutOff: 100}, 40 * ms, flow{size: 96, byLoss: true, rounds: 1}},
		{"by loss, not more than half of the window", flow{size: 16, byLoss: true, cutOff: 200}, 40 * ms, flow{size: 24, byLoss: true, rounds: 1}},
		{"a test", flow{size: 64, byLoss: true, rounds: 64}, 40 * ms, flow{size: 16, start: true, tested: true, back: 64, rounds: 3}},
		{"the delay is another's still", flow{size: 16, start: true, tested: true, back: 64, rounds: 3}, 39 * ms, flow{size: 64, byLoss: true}},
		{"it is not", flow{size: 16, start: true, tested: true, back: 64, rounds: 3}, ms, flow{size: 32, start: true}},
	} {
		f := row.before
		f.most, f.target = 256, 4*ms
		f.judge(core.Time(time.Second), sample{f.size, row.delay})
		got := flow{size: f.size, start: f.start, byLoss: f.byLoss, tested: f.tested, back: f.back, rounds: f.rounds}
		if got != row.want {
			t.Errorf("%s: %+v, want %+v", row.name, got, row.want)
		}
	}
}

// TestNoTarget: without a target for the delay, the window grows whatever it is.
func TestNoTarget(t *testing.T) {
	f := newFlow(256, 0)
	for range 3 {
		f.judge(0, sample{f.size, time.Second})
	}
	if f.size != 256 || f.byLoss {
		t.Errorf("window %d, by loss: %v", f.size, f.byLoss)
	}
}

// TestRounds: a round counts what was sent after its beginning, and reports
// something only if the window was used up.
func TestRounds(t *testing.T) {
	const next = 1 << 31 // numbers wrap between
	for _, row := range []struct {
		name string
		from uint32
		full bool
		n    int
		want uint32
	}{
		{"used up", next, true, 64, 128},
		{"not used up", next, false, 64, 64},
		{"not over", next, true, 63, 64},
		{"sent before", next + 1000, true, 64, 64},
	} {
		f := newFlow(256, 4*time.Millisecond)
		f.pause(row.from)
		f.round.full = row.full
		for i := range row.n {
			f.landed(0, next+uint32(i), next+500, time.Millisecond)
		}
		if f.size != row.want {
			t.Errorf("%s: window %d, want %d", row.name, f.size, row.want)
		}
		if over := row.want == 128; over && f.round.from != next+500 {
			t.Errorf("%s: the next round begins with %d", row.name, f.round.from)
		}
	}
}

// TestLosses: the window is cut at most once for each window in which something
// was lost, as far as the queue reports.
func TestLosses(t *testing.T) {
	const most = 64
	for _, row := range []struct {
		name   string
		rounds int // by loss; 0: by delay
		q      queue
		losses uint32    // of each window
		want   [4]uint32 // windows after each of four
	}{
		{"by chance", 0, short, 1, [4]uint32{64, 64, 64, 64}},
		{"by chance, a quarter", 0, short, 16, [4]uint32{64, 64, 64, 64}},
		{"with a queue", 0, passing, 1, [4]uint32{32, 16, 16, 16}},
		{"with a queue that stands", 0, standing, 1, [4]uint32{32, 16, 8, 4}},
		{"nearly all", 0, short, 64, [4]uint32{32, 16, 8, 4}},
		{"in competition", 1, standing, 2, [4]uint32{44, 30, 21, 14}},
		{"in competition, after a while, a test", 16, standing, 2, [4]uint32{16, 8, 4, 4}},
	} {
		f := newFlow(most, 4*time.Millisecond)
		f.byLoss, f.rounds = row.rounds > 0, row.rounds
		var got [4]uint32
		for i := range got {
			n := uint32(i * most)
			for j := range row.losses {
				f.lost(0, n+j, n+most, row.q)
			}
			got[i] = f.size
		}
		if got != row.want {
			t.Errorf("%s: windows %d, want %d", row.name, got, row.want)
		}
	}
}

// TestWindowStaysWithinW, whatever the rounds report.
func TestWindowStaysWithinW(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := uint32(1) << rapid.IntRange(0, 12).Draw(t, "log W")
		f := newFlow(most, time.Duration(rapid.IntRange(0, 10).Draw(t, "target, ms"))*time.Millisecond)
		next := rapid.Uint32().Draw(t, "next")
		f.pause(next)
		now := core.Time(0)
		for range rapid.IntRange(1, 300).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.IntRange(0, 1e8).Draw(t, "time")))
			if rapid.IntRange(0, 9).Draw(t, "what") == 0 {
				f.lost(now, next-uint32(rapid.IntRange(0, 100).Draw(t, "back")), next, queue(rapid.IntRange(0, 2).Draw(t, "queue")))
			} else {
				d := time.Duration(rapid.IntRange(0, 1e8).Draw(t, "delay"))
				for range f.size {
					f.round.full = true
					f.landed(now, next, next+1, d)
					next++
				}
			}
			if f.size < f.least() || f.size > most {
				t.Fatalf("window %d of %d", f.size, most)
			}
		}
	})
}

// TestAlone: a group alone fills its link, with a queue of a few milliseconds
// whatever W is, and takes no delay for another's.
func TestAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := fabricLink(rapid.Uint64().Draw(t, "seed"))
		d.jitter = time.Duration(rapid.IntRange(0, 1000).Draw(t, "jitter, us")) * time.Microsecond
		o := newOurs(1 << rapid.IntRange(6, 10).Draw(t, "log W"))
		d.add(o, time.Duration(rapid.IntRange(50, 1000).Draw(t, "round trip, us"))*time.Microsecond, 0)
		d.run(500 * time.Millisecond)
		d.reset()
		d.run(time.Second)
		if s := d.shares(time.Second)[0]; s < 0.99 || d.queue() > 5*time.Millisecond || o.byLoss {
			t.Fatalf("%.3f of the link with a queue of %v, by loss: %v", s, d.queue(), o.byLoss)
		}
	})
}

// TestGroupsShareALink: groups of like round trips get like shares, those of
// unlike ones nearly so; the queue stays below what counts as another's, and far
// below what the link has room for.
func TestGroupsShareALink(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := fabricLink(rapid.Uint64().Draw(t, "seed"))
		d.jitter = time.Duration(rapid.IntRange(0, 500).Draw(t, "jitter, us")) * time.Microsecond
		k := rapid.IntRange(2, 8).Draw(t, "groups")
		unlike := rapid.Bool().Draw(t, "unlike")
		var all []*ours
		for i := range k {
			o := newOurs(1 << rapid.IntRange(6, 9).Draw(t, "log W"))
			base := 300 * time.Microsecond
			if unlike {
				base = time.Duration(rapid.IntRange(100, 1000).Draw(t, "round trip, us")) * time.Microsecond
			}
			d.add(o, base, core.Time(i)*core.Time(rapid.IntRange(0, 100).Draw(t, "start, ms"))*core.Time(time.Millisecond))
			all = append(all, o)
		}
		d.run(3 * time.Second)
		d.reset()
		d.run(2 * time.Second)
		s, least := d.shares(2*time.Second), 0.99
		if unlike {
			least = 0.9
		}
		if j := jain(s); j < least {
			t.Errorf("shares %.3f, Jain's index %.3f, want %v", s, j, least)
		}
		if d.queue() > longDelay*DefaultTiming().Queue {
			t.Errorf("%d groups have a queue of %v", k, d.queue())
		}
		for i, o := range all {
			if o.byLoss {
				t.Errorf("group %d of %d takes the queue for another's", i, k)
			}
		}
	})
}

// TestBesideTCP: beside a stream of CUBIC on the same link, neither gets less
// than a third, once both have found their shares; and when the stream is over,
// the queue is soon short again.
func TestBesideTCP(t *testing.T) {
	for seed := range uint64(10) {
		d := fabricLink(seed)
		d.jitter = 500 * time.Microsecond
		o, c := newOurs(512), newCubic()
		d.add(o, 300*time.Microsecond, core.Time(seed%3)*core.Time(2*time.Second))
		tcp := d.add(c, 200*time.Microsecond, core.Time(seed%5)*core.Time(time.Second))
		d.run(15 * time.Second)
		d.reset()
		d.run(20 * time.Second)
		if s := d.shares(20 * time.Second); s[0] < 1./3 || s[1] < 1./3 {
			t.Errorf("seed %d: shares %.2f", seed, s)
		}
		tcp.control = quiet{c}
		d.run(5 * time.Second)
		d.reset()
		d.run(time.Second)
		if s := d.shares(time.Second)[0]; s < 0.99 || d.queue() > 5*time.Millisecond {
			t.Errorf("seed %d: %.2f alone again, with a queue of %v, window %d", seed, s, d.queue(), o.size)
		}
	}
}

// TestBesideSmallQueues: beside a stream that keeps 5 ms of queue and never
// loses anything, neither gets less than a third.
func TestBesideSmallQueues(t *testing.T) {
	for seed := range uint64(10) {
		d := fabricLink(seed)
		d.jitter = 500 * time.Microsecond
		o := newOurs(256)
		d.add(o, 300*time.Microsecond, core.Time(seed%3)*core.Time(time.Second))
		d.add(shallow{newCubic()}, 200*time.Microsecond, core.Time(seed%5)*core.Time(time.Second))
		d.run(10 * time.Second)
		d.reset()
		d.run(10 * time.Second)
		if s := d.shares(10 * time.Second); s[0] < 1./3 || s[1] < 1./3 || o.byLoss {
			t.Errorf("seed %d: shares %.2f, window %d, by loss: %v", seed, s, o.size, o.byLoss)
		}
	}
}

// quiet is a flow that has nothing more to send.
type quiet struct{ control }

func (quiet) window() int { return 0 }

// TestDelayOfHosts: where every packet takes long, whatever the window, it is
// not cut for that.
func TestDelayOfHosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := fabricLink(rapid.Uint64().Draw(t, "seed"))
		d.each = time.Microsecond
		o := newOurs(256)
		d.add(o, time.Duration(rapid.IntRange(13, 40).Draw(t, "round trip, ms"))*time.Millisecond, 0)
		d.run(2 * time.Second)
		d.reset()
		d.run(2 * time.Second)
		per := float64(d.flows[0].done) / 2 * d.flows[0].base.Seconds()
		if per < 0.9*firstWindow {
			t.Fatalf("%.0f chunks a round trip of %v, window %d", per, d.flows[0].base, o.size)
		}
	})
}

// TestStreams: a link is waited for where more is to be sent than may be on its
// way, and not where all of it is.
func TestStreams(t *testing.T) {
	const window = 8
	for _, c := range []struct {
		chunks, most int
		want         bool
	}{{2, 7, false}, {8, 7, false}, {9, 7, true}, {9, 8, false}, {100, 7, true}} {
		s, err := New(Config{Rank: 1, Members: 2, ChunkBytes: chunkBytes, Window: window}, 0)
		if err != nil {
			t.Fatal(err)
		}
		v := make([]byte, c.chunks*chunkBytes)
		if err := s.Start(Operation{
			Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Int32, Elements: len(v) / 4, In: v, Out: v,
		}); err != nil {
			t.Fatal(err)
		}
		var out Output
		if err := s.Enter(0, Link{Epoch: 2, Window: window, Parent: parentAddr}, Decision{}, &out); err != nil {
			t.Fatal(err)
		}
		s.Step(0, nil, &out)
		if got := s.Streams(c.most); got != c.want {
			t.Errorf("%d chunks, of which %d are sent: streams more than %d: %v", c.chunks, len(out.Sends), c.most, got)
		}
	}
}

// TestHeldBatchFillsTheWindow: a window that has no room for a whole batch more counts as used up, and so moves.
func TestHeldBatchFillsTheWindow(t *testing.T) {
	const window, cut = 256, 93 // two batches, and a part of one
	s, err := New(Config{Rank: 1, Members: 3, ChunkBytes: chunkBytes, Window: window}, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := Output{TakesBatches: true}
	if err := s.Enter(0, Link{Epoch: 2, Window: window, Parent: parentAddr}, Decision{}, &out); err != nil {
		t.Fatal(err)
	}
	s.flow.size, s.flow.start = cut, false
	v := make([]byte, 4000*chunkBytes)
	if err := s.Start(Operation{Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Int32, Elements: len(v) / 4, In: v, Out: v}); err != nil {
		t.Fatal(err)
	}
	now := core.Time(0)
	for s.Step(now, nil, &out); s.Pending(); {
		var results [][]byte
		for _, p := range out.packets() {
			results = append(results, mirrored(p, wire.Result))
		}
		if len(results) == 0 {
			t.Fatal("nothing is on its way")
		}
		out.Reset()
		now = now.Add(10 * time.Microsecond)
		s.Step(now, bundled(results), &out)
	}
	if s.flow.size <= cut {
		t.Errorf("the window began with %d and is %d", cut, s.flow.size)
	}
}
