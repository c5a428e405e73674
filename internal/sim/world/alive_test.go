package world

import (
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire"
)

var (
	courses    = flag.Int("courses", 4, "how many courses of each kind TestLivingTreeIsKept runs")
	deathSeeds = flag.Int("deaths-found", 1, "how often TestDeathIsFound has each thing break")
)

// of draws one of some values.
func of[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

var (
	slowRates = []float64{10e6, 20e6}
	fastRates = []float64{1e9, 10e9}
	anyRates  = append(slowRates, fastRates...)
)

// drawCourse draws what the kinds of courses have in common: a large sum, two
// of some chunks, and small ones.
func drawCourse(seed uint64, rates []float64, loss float64) (course, *rand.Rand) {
	r := rand.New(rand.NewPCG(seed, 0xA11))
	c := course{
		rate: of(r, rates...), uphill: 1, up: loss, down: loss, seed: seed,
		window: of[uint32](r, 64, 256),
		sums:   []int{1 << 20, 64 << 10, 4, 64 << 10, 4, 64, 1000, 4, 4, 4, 4, 4},
	}
	if r.IntN(2) == 0 {
		c.room = time.Duration(8 * of(r, 64., 200.) * 1514 * 1e9 / c.rate) // as many full packets
	}
	return c, r
}

// TestLivingTreeIsKept: no tree is given up while every switch and link on it
// lives, however many packets it loses, delays or repeats, and with queues that
// overflow, late members, and switches that are slow or stop for a while.
//
//	go test -run LivingTree ./internal/sim/world -courses 1000
func TestLivingTreeIsKept(t *testing.T) {
	for _, kind := range []struct {
		name string
		draw func(seed uint64) course
	}{
		{"slow, 1 %", lossesOf(slowRates, 0.01)},
		{"slow, 3 %", lossesOf(slowRates, 0.03)},
		{"slow, 10 %", lossesOf(slowRates, 0.1)},
		{"fast, 1 %", lossesOf(fastRates, 0.01)},
		{"fast, 3 %", lossesOf(fastRates, 0.03)},
		{"fast, 10 %", lossesOf(fastRates, 0.1)},
		{"one way", func(seed uint64) course {
			c, r := drawCourse(seed, anyRates, 0)
			*of(r, &c.up, &c.down) = 0.1
			return c
		}},
		{"a tenth of the rate uphill", func(seed uint64) course {
			c, _ := drawCourse(seed, []float64{100e6, 1e9}, 0.03)
			c.uphill = 0.1
			return c
		}},
		{"repeated and reordered", func(seed uint64) course {
			c, r := drawCourse(seed, anyRates, 0.03)
			c.double, c.stray = 0.1, of(r, 100*time.Microsecond, 10*time.Millisecond)
			return c
		}},
		{"slow switches", func(seed uint64) course {
			c, r := drawCourse(seed, fastRates, 0.03)
			c.packet = of(r, 20*time.Microsecond, 200*time.Microsecond)
			return c
		}},
		{"switches that stop", func(seed uint64) course {
			c, r := drawCourse(seed, anyRates, 0.01)
			c.pause = of(r, 50*time.Millisecond, 500*time.Millisecond)
			return c
		}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			lost := 0
			for seed := range uint64(*courses) {
				c := kind.draw(seed)
				w := newCourse(t, c)
				if l := w.run(t); l != nil {
					if lost++; lost <= 3 {
						t.Errorf("%+v is lost after %v: %+v", c, time.Duration(w.Now()), *l)
					}
					continue
				}
				w.judge(t)
			}
			if lost > 0 {
				t.Errorf("%d of %d trees were given up", lost, *courses)
			}
		})
	}
}

func lossesOf(rates []float64, loss float64) func(uint64) course {
	return func(seed uint64) course {
		c, _ := drawCourse(seed, rates, loss)
		return c
	}
}

// judge compares every result with the sum.
func (w *courseWorld) judge(t *testing.T) {
	t.Helper()
	n := uint32(len(w.members))
	for r, m := range w.members {
		for _, v := range m.vectors {
			for i := 0; i < len(v); i += 4 {
				if got, want := binary.LittleEndian.Uint32(v[i:]), uint32(i)*(n*(n+1)/2); got != want {
					t.Fatalf("%+v: rank %d has %d in a sum of %d bytes at %d, want %d", w.course, r, got, len(v), i, want)
				}
			}
		}
	}
}

// TestRepairsOfOneChunkAreLost: that all which is said of one chunk is lost for
// 400 ms, while others pass, is no reason to give a tree up.
func TestRepairsOfOneChunkAreLost(t *testing.T) {
	w := newCourse(t, course{rate: 1e9, uphill: 1, window: 256, sums: []int{1 << 20}})
	lost, probes := 0, 0
	until := core.Never
	intercept(w.World, func(p *packet, fate *sim.Fate) {
		if p.Chunk != 100 || p.from != w.switches[0] && p.to != w.switches[0] {
			return
		}
		if p.is(wire.Probe, 100) {
			probes++
		}
		if p.Type != wire.Contribution && w.Now() < until {
			lost++
			until = min(until, w.Now().Add(400*time.Millisecond))
			fate.Lose = true
		}
	})
	if l := w.run(t); l != nil {
		t.Fatalf("the tree is lost after %v: %+v", time.Duration(w.Now()), *l)
	}
	w.judge(t)
	if lost < 10 || probes < 8 {
		t.Errorf("the trace has not happened: %d packets lost, %d probes", lost, probes)
	}
}

// TestDeathIsFound: a switch that dies, or a link that loses all that is sent
// one way, is found within bounds where members alone can find it.
func TestDeathIsFound(t *testing.T) {
	const leaf = 4 // the second leaf switch
	for _, row := range []struct {
		what   string
		breaks func(w *courseWorld)
	}{
		{"the root", func(w *courseWorld) { w.Crash(w.switches[0]) }},
		{"a middle switch", func(w *courseWorld) { w.Crash(w.switches[2]) }},
		{"a leaf switch", func(w *courseWorld) { w.Crash(w.switches[leaf]) }},
		{"the link of root and middle", func(w *courseWorld) { w.Cut(w.switches[0], w.switches[2]) }},
		{"the link of middle and leaf", func(w *courseWorld) { w.Cut(w.switches[1], w.switches[leaf]) }},
		{"from root to middle", func(w *courseWorld) { w.silence(w.switches[0], w.switches[2]) }},
		{"from middle to root", func(w *courseWorld) { w.silence(w.switches[2], w.switches[0]) }},
		{"from leaf to middle", func(w *courseWorld) { w.silence(w.switches[leaf], w.switches[1]) }},
		{"from leaf to member", func(w *courseWorld) { w.silence(w.switches[leaf], w.nodes[2]) }},
	} {
		for _, on := range []struct {
			rate, loss float64
			within     time.Duration
		}{
			{1e9, 0, 1100 * time.Millisecond}, {20e6, 0, 1300 * time.Millisecond},
			{1e9, 0.03, 3 * time.Second}, {20e6, 0.03, 3 * time.Second}, {1e9, 0.1, 3 * time.Second}, {20e6, 0.1, 3 * time.Second},
		} {
			var most, sum time.Duration
			for seed := range uint64(*deathSeeds) {
				c := course{rate: on.rate, uphill: 1, up: on.loss, down: on.loss, window: 256, sums: []int{1 << 20}, seed: seed}
				took := deathOf(t, c, row.breaks)
				most, sum = max(most, took), sum+took
			}
			mean := sum / time.Duration(*deathSeeds)
			t.Logf("%s, %g bit/s, loss %v: %v, at most %v", row.what, on.rate, on.loss, mean, most)
			if most > on.within {
				t.Errorf("%s, %g bit/s, loss %v: found after %v, want %v", row.what, on.rate, on.loss, most, on.within)
			}
		}
	}
}

// deathOf has something break in the midst of a sum, and returns when that is
// found.
func deathOf(t *testing.T, c course, breaks func(*courseWorld)) time.Duration {
	t.Helper()
	w := newCourse(t, c)
	half := func() bool { return w.members[0].session.Counters().Results > 300+10*c.seed }
	if err := w.Await(courseLimit, half); err != nil {
		t.Fatal(err)
	}
	breaks(w)
	at := w.Now()
	l := w.run(t)
	if l == nil {
		t.Fatalf("%+v: the sum has ended", c)
	}
	if l.Probes < manager.DefaultConfig().Probes || l.Over < session.DefaultTiming().Silence || l.Quiet < l.Over {
		t.Errorf("%+v: the tree is given up too early: %v", c, l)
	}
	return w.Now().Sub(at)
}

// silence has a link lose all that is sent from one end.
func (w *courseWorld) silence(from, to sim.NodeID) {
	w.Intercept(func(_ sim.Kind, a, b sim.Addr, _ []byte, fate *sim.Fate) {
		fate.Lose = fate.Lose || a.Node == from && b.Node == to
	})
}

// TestOldWord: in these courses a switch passed on that its parent had lost the
// root, which was no longer so, to members whose probes the parent does not pass
// on.
func TestOldWord(t *testing.T) {
	for _, seed := range []uint64{511, 768} {
		c, _ := drawCourse(seed, slowRates, 0.1)
		if l := newCourse(t, c).run(t); l != nil {
			t.Errorf("%+v: %v", c, l)
		}
	}
}

// TestOldWordOfAParent: the lowest member beneath a middle switch stops while that
// switch waits for answers of the root, and with it the probes that would show
// that the root lives. Those of a member beneath its other leaf switch end at the
// middle one, which says what it knew before.
func TestOldWordOfAParent(t *testing.T) {
	const chunk, stops = 100, 3 * time.Second
	k := manager.DefaultConfig().SwitchProbes()
	w := newCourse(t, course{rate: 1e9, uphill: 1, window: 256, sums: []int{1 << 20}})
	root, middle := w.switches[0], w.switches[1]
	unanswered, old := 0, 0
	intercept(w.World, func(p *packet, fate *sim.Fate) {
		switch {
		case p.Chunk != chunk:
		case p.from == middle && p.to == root && p.Type == wire.Probe:
			unanswered++
		case p.from == root && p.to == middle && unanswered <= k:
			fate.Lose = true
		case p.from == middle && p.to == w.switches[4] && p.Type == wire.Lost:
			old++
		}
	})
	if err := w.Await(courseLimit, func() bool { return unanswered == k }); err != nil {
		t.Fatal(err)
	}
	w.Pause(w.nodes[0], stops)
	if l := w.run(t); l != nil {
		t.Fatalf("the tree is lost after %v: %v", time.Duration(w.Now()), l)
	}
	w.judge(t)
	if old == 0 || w.Now() < core.Time(stops) {
		t.Errorf("the trace has not happened: the middle switch has said lost %d times", old)
	}
}
