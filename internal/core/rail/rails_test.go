package rail

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
)

// link is a link in virtual time: a queue without a bound, a rate, and a delay.
type link struct {
	mbit  float64
	trip  time.Duration // a round trip
	start uint64        // the bandwidth that the user gives, bit/s
	free  core.Time     // the queue is empty
	sent  int
	acked int
}

// lab sends fragments over links by what Rails chooses.
type lab struct {
	tb    failer
	rails Rails
	links []*link
	now   core.Time
	acks  []ack // by time
	done  core.Time
	each  func(rail, size int)
}

type failer interface{ Fatalf(string, ...any) }

type ack struct {
	at         core.Time
	rail, size int
}

func newLab(tb failer, links ...*link) *lab {
	l := &lab{tb: tb, links: links, each: func(int, int) {}}
	for i, k := range links {
		l.rails.Up(i, k.start)
	}
	return l
}

func (l *lab) send(i, size int) {
	k := l.links[i]
	l.rails.Sent(i, size, l.now)
	k.free = max(k.free, l.now).Add(time.Duration(float64(size) * 8e3 / k.mbit))
	k.sent += size
	l.done = max(l.done, k.free.Add(k.trip/2))
	a := ack{k.free.Add(k.trip), i, size}
	at, _ := slices.BinarySearchFunc(l.acks, a, func(x, y ack) int {
		if x.at <= y.at {
			return -1
		}
		return 1
	})
	l.acks = slices.Insert(l.acks, at, a)
	l.each(i, size)
}

// step passes to the next acknowledgement, or millisecond.
func (l *lab) step() {
	tick := l.now + ms - l.now%ms
	if len(l.acks) == 0 || l.acks[0].at > tick {
		l.now = tick
		return
	}
	a := l.acks[0]
	l.acks = l.acks[1:]
	l.now = a.at
	l.links[a.rail].acked += a.size
	l.rails.Acked(a.rail, a.size, l.now)
}

// flow keeps all windows full until a time.
func (l *lab) flow(until core.Time, size int) {
	for l.now < until {
		for {
			i, ok := l.rails.Choose(size, l.now)
			if !ok {
				break
			}
			l.send(i, size)
		}
		l.step()
	}
}

// message sends one and returns how long it takes until all of it arrived.
func (l *lab) message(bytes, size int) time.Duration {
	from := l.now
	l.done = 0
	for rest := bytes; rest > 0; {
		n := min(size, rest)
		if i, ok := l.rails.ChooseOf(n, rest, l.now); ok {
			l.send(i, n)
			rest -= n
			continue
		}
		if l.step(); l.now.Sub(from) > time.Hour {
			l.tb.Fatalf("%d bytes are left after an hour", rest)
		}
	}
	return l.done.Sub(from)
}

// settle waits until nothing is in flight.
func (l *lab) settle() {
	for len(l.acks) > 0 {
		l.step()
	}
}

// shares flows for a time and returns the rate of each link in it, in Mbit/s.
func (l *lab) shares(d time.Duration, size int) []float64 {
	before := make([]int, len(l.links))
	for i, k := range l.links {
		before[i] = k.acked
	}
	l.flow(l.now.Add(d), size)
	rates := make([]float64, len(l.links))
	for i, k := range l.links {
		rates[i] = float64(k.acked-before[i]) * 8e3 / float64(d)
	}
	return rates
}

// fluid returns the least time in which so many bytes arrive: those of a fluid that flows
// over all links at once.
func fluid(bytes int, links ...*link) time.Duration {
	low, high := 0.0, 1e13
	for range 100 {
		t, sum := (low+high)/2, 0.0
		for _, k := range links {
			sum += max(0, t-float64(k.trip)/2) * k.mbit / 8e3
		}
		if sum < float64(bytes) {
			low = t
		} else {
			high = t
		}
	}
	return time.Duration(high)
}

// TestSmallTakesTheLowestDelay, whatever the bandwidth.
func TestSmallTakesTheLowestDelay(t *testing.T) {
	l := newLab(t, &link{mbit: 1000, trip: 4 * time.Millisecond}, &link{mbit: 100, trip: time.Millisecond}, &link{mbit: 100, trip: 2 * time.Millisecond})
	for i, k := range l.links {
		l.rails.Delay(i, k.trip, 0)
	}
	for range 1000 {
		l.message(8, 8)
		l.settle()
	}
	if got := l.links[1].sent; got != 8000 {
		t.Errorf("%d of 8000 bytes took the rail with the lowest delay", got)
	}
}

// TestThroughput is that of all links, in their ratio, also where nobody knows it before.
func TestThroughput(t *testing.T) {
	for _, mbit := range [][]float64{{200}, {200, 200}, {200, 100}, {100, 10}, {1000, 1000, 1000}, {10000, 10000}, {10000, 1000}} {
		for _, trip := range []time.Duration{100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond} {
			for _, known := range []float64{0, 1e6, 1e7} {
				t.Run(fmt.Sprint(mbit, trip, known), func(t *testing.T) {
					l := newLab(t)
					l.rails.Ceiling = 64 << 20
					for i, m := range mbit {
						l.links = append(l.links, &link{mbit: m, trip: trip})
						l.rails.Up(i, uint64(m*known))
					}
					l.flow(200*ms, 16<<10)
					for i, rate := range l.shares(3*time.Second, 16<<10) {
						if rate < 0.95*mbit[i] || rate > 1.05*mbit[i] {
							t.Errorf("link %d has %.4g of %v Mbit/s: %+v", i, rate, mbit[i], l.rails.Measured(i))
						}
					}
				})
			}
		}
	}
}

// TestLargeFragments: the next one is on its way before the last is acknowledged.
func TestLargeFragments(t *testing.T) {
	for _, links := range [][]link{
		{{mbit: 200, trip: time.Millisecond}, {mbit: 200, trip: time.Millisecond}},
		{{mbit: 200, trip: time.Millisecond}, {mbit: 20, trip: 20 * time.Millisecond}},
		{{mbit: 10000, trip: 50 * time.Microsecond}, {mbit: 1000, trip: 50 * time.Microsecond}},
	} {
		for _, size := range []int{64 << 10, 256 << 10, 1 << 20} {
			a, b := links[0], links[1]
			l := newLab(t, &a, &b)
			l.flow(500*ms, size)
			for i, rate := range l.shares(5*time.Second, size) {
				if rate < 0.93*links[i].mbit {
					t.Errorf("fragments of %d bytes: link %d has %.4g of %v Mbit/s: %+v", size, i, rate, links[i].mbit, l.rails.Measured(i))
				}
			}
		}
	}
}

// TestFluidOptimum: a message takes hardly longer than a fluid would.
func TestFluidOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLab(t)
		for i := range rapid.IntRange(1, 4).Draw(t, "rails") {
			k := &link{mbit: rapid.Float64Range(10, 1000).Draw(t, "Mbit/s"), trip: time.Duration(rapid.IntRange(50, 10000).Draw(t, "us")) * time.Microsecond}
			l.links = append(l.links, k)
			l.rails.Up(i, 0)
			l.rails.Delay(i, k.trip, 0)
		}
		l.flow(500*ms, 16<<10)
		l.settle()
		bytes := rapid.IntRange(1<<20, 64<<20).Draw(t, "bytes")
		got, best := l.message(bytes, 16<<10), fluid(bytes, l.links...)
		allowed := best + best/10 + 2*time.Millisecond
		var slowest, latest time.Duration
		for _, k := range l.links {
			slowest, latest = max(slowest, time.Duration(16<<10*8e3/k.mbit)), max(latest, k.trip)
		}
		if allowed += 2*slowest + latest/2; got > allowed {
			t.Fatalf("%d bytes take %v, a fluid takes %v: %+v", bytes, got, best, l.rails.Measured(0))
		}
	})
}

// TestNoStarvation: in a flow, every link has its throughput, and more of a link is never
// less in sum.
func TestNoStarvation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sum := func(rates []float64) (s float64) {
			for _, r := range rates {
				s += r
			}
			return s
		}
		var links []link
		for range rapid.IntRange(1, 3).Draw(t, "rails") {
			links = append(links, link{mbit: rapid.Float64Range(10, 1000).Draw(t, "Mbit/s"), trip: time.Duration(rapid.IntRange(50, 10000).Draw(t, "us")) * time.Microsecond})
		}
		run := func() []float64 {
			var copies []*link
			for _, k := range links {
				copies = append(copies, &k)
			}
			l := newLab(t, copies...)
			l.flow(300*ms, 16<<10)
			return l.shares(time.Second, 16<<10)
		}
		before := run()
		for i, rate := range before {
			if rate < 0.9*links[i].mbit {
				t.Fatalf("link %d has %.4g of %.4g Mbit/s", i, rate, links[i].mbit)
			}
		}
		links[0].mbit *= 1.5
		if after := run(); sum(after) < 0.98*sum(before) {
			t.Fatalf("%v, and with more on the first %v", before, after)
		}
	})
}

// TestSlowRailLosesItsWeight within 100 ms, and is used again when it recovers.
func TestSlowRailLosesItsWeight(t *testing.T) {
	l := newLab(t, &link{mbit: 200, trip: time.Millisecond}, &link{mbit: 200, trip: time.Millisecond})
	l.flow(500*ms, 16<<10)
	l.links[1].mbit = 20
	l.flow(l.now.Add(100*time.Millisecond), 16<<10)
	if rates := l.shares(500*time.Millisecond, 16<<10); rates[1] > 25 || rates[0] < 190 {
		t.Errorf("one is slow: %.4g Mbit/s", rates)
	}
	if took, best := l.message(1<<20, 16<<10), fluid(1<<20, l.links...); took > 3*best {
		t.Errorf("a message takes %v, at best %v", took, best)
	}
	l.links[1].mbit = 200
	l.flow(l.now.Add(100*time.Millisecond), 16<<10)
	if rates := l.shares(500*time.Millisecond, 16<<10); rates[0] < 190 || rates[1] < 190 {
		t.Errorf("it is fast again: %.4g Mbit/s", rates)
	}
}

// TestLateRailLosesItsWeight: its delay rises to 100 ms, and small messages leave it within
// 100 ms, with pings or without; they take it again when it recovers and there are pings.
func TestLateRailLosesItsWeight(t *testing.T) {
	for _, pings := range []bool{false, true} {
		l := newLab(t, &link{mbit: 200, trip: time.Millisecond}, &link{mbit: 200, trip: 3 * time.Millisecond})
		run := func(d time.Duration) (second int) {
			before := l.links[1].sent
			var pinged core.Time
			for until := l.now.Add(d); l.now < until; {
				if pings && l.now.Sub(pinged) >= 50*time.Millisecond {
					pinged = l.now
					for i, k := range l.links {
						l.rails.Delay(i, k.trip, l.now)
					}
				}
				l.message(100, 100)
				for next := l.now + ms/4; l.now < next; {
					l.step()
				}
			}
			return l.links[1].sent - before
		}
		run(100 * time.Millisecond)
		if n := run(time.Second); n != 0 {
			t.Errorf("pings %v: %d bytes took the rail with the larger delay", pings, n)
		}
		l.links[0].trip = 100 * time.Millisecond
		run(100 * time.Millisecond)
		before := l.links[0].sent
		if run(500 * time.Millisecond); l.links[0].sent != before {
			t.Errorf("pings %v: %d bytes took the rail that is late", pings, l.links[0].sent-before)
		}
		l.links[0].trip = time.Millisecond
		run(200 * time.Millisecond)
		if n := run(time.Second); pings && n != 0 {
			t.Errorf("the rail with the lowest delay recovered, and %d bytes took the other", n)
		}
	}
}

// TestStalledRailIsLeft: nothing is acknowledged on one any more.
func TestStalledRailIsLeft(t *testing.T) {
	l := newLab(t, &link{mbit: 200, trip: time.Millisecond}, &link{mbit: 200, trip: time.Millisecond})
	l.flow(500*ms, 16<<10)
	l.settle()
	l.links[0].mbit = 1e-3
	l.message(1<<20, 16<<10)
	before := l.links[0].sent
	for range 100 {
		l.message(100, 100)
		l.now += ms
	}
	if got := l.links[0].sent - before; got > 100 {
		t.Errorf("%d bytes were sent on a rail that does not acknowledge", got)
	}
}

// TestRecoveredRailIsMeasuredAgain by messages for which the other rail suffices.
func TestRecoveredRailIsMeasuredAgain(t *testing.T) {
	l := newLab(t, &link{mbit: 200, trip: time.Millisecond}, &link{mbit: 1, trip: time.Millisecond})
	for range 20 {
		l.message(1<<20, 16<<10)
		l.settle()
	}
	l.links[1].mbit = 200
	for range 20 {
		l.message(1<<20, 16<<10)
		l.settle()
	}
	if got, best := l.message(1<<20, 16<<10), fluid(1<<20, l.links...); got > best+best/5 {
		t.Errorf("a message takes %v, at best %v: %+v", got, best, l.rails.Measured(1))
	}
}

func TestDownAndUp(t *testing.T) {
	var r Rails
	if _, ok := r.Choose(1, 0); ok {
		t.Error("no rail is up, and one was chosen")
	}
	r.Up(3, 0)
	for i := 0; ; i++ {
		at, ok := r.Choose(16<<10, 0)
		if !ok {
			if i != newWindow/(16<<10) {
				t.Errorf("full after %d fragments", i)
			}
			break
		}
		if at != 3 {
			t.Fatalf("rail %d was chosen", at)
		}
		r.Sent(3, 16<<10, 0)
	}
	r.Down(3)
	r.Sent(3, 1, 0)
	r.Acked(3, 16<<10, ms)
	r.Delay(3, time.Millisecond, ms)
	if m := r.Measured(3); m != (Measured{}) || r.IsUp(3) {
		t.Errorf("down, and %+v", m)
	}
	r.Up(3, 8e6)
	if m := r.Measured(3); m.Rate != 8e6 || m.InFlight != 0 {
		t.Errorf("up, and %+v", m)
	}
	r.Acked(3, 1<<20, ms) // nothing is in flight
	if m := r.Measured(3); m.InFlight != 0 {
		t.Errorf("%+v", m)
	}
}

func TestRailsAllocateNothing(t *testing.T) {
	var r Rails
	r.Up(0, 0)
	r.Up(1, 1e9)
	now := core.Time(0)
	if n := testing.AllocsPerRun(1000, func() {
		i, _ := r.Choose(16<<10, now)
		r.Sent(i, 16<<10, now)
		now += ms
		r.Delay(i, time.Millisecond, now)
		r.Acked(i, 16<<10, now)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkChooseSentAcked(b *testing.B) {
	var r Rails
	r.Up(0, 1e9)
	r.Up(1, 1e9)
	now := core.Time(0)
	for b.Loop() {
		i, _ := r.Choose(16<<10, now)
		r.Sent(i, 16<<10, now)
		now += ms / 10
		r.Acked(i, 16<<10, now)
	}
}

// TestSmallFragmentsStay: of equal rails small fragments take the first, though what holds up
// the other side makes it seem slower than the idle one; of others the one with the lowest
// delay; and not one that has become slow.
func TestSmallFragmentsStay(t *testing.T) {
	const us = time.Microsecond
	for _, test := range []struct {
		trips [2]time.Duration
		want  int
	}{{[2]time.Duration{30 * us, 30 * us}, 0},
		{[2]time.Duration{33 * us, 30 * us}, 0},
		{[2]time.Duration{100 * us, 30 * us}, 1}, {[2]time.Duration{30 * us, 3000 * us}, 0}, {[2]time.Duration{3000 * us, 30 * us}, 1}} {
		var r Rails
		var now core.Time
		trips := test.trips
		took := [2]int{}
		send := func(k int) {
			i, ok := r.Choose(100, now)
			if !ok {
				t.Fatal("no rail")
			}
			took[i]++
			r.Sent(i, 100, now)
			now = now.Add(trips[i] + time.Duration(k%7)*10*us) // as long as the other side waits for its processor
			r.Acked(i, 100, now)
			now = now.Add(5 * us)
		}
		r.Up(0, 0)
		r.Up(1, 0)
		for k := range 2000 {
			send(k)
		}
		if other := took[1-test.want]; other > 20 {
			t.Errorf("delays %v: %v fragments", trips, took)
		}
		trips[test.want] = 20000 * us
		took = [2]int{}
		for k := range 100 {
			send(k)
		}
		if took[test.want] > 5 {
			t.Errorf("delays %v, after rail %d has become slow: %v fragments", trips, test.want, took)
		}
	}
}
