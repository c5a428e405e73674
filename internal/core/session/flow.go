package session

import (
	"math"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// flow moves the number of contributions on their way within W: see "Window" in
// doc.go. It judges round by round. A round are as many results as the window,
// of numbers that were sent after the window had changed.
type flow struct {
	most   uint32        // W
	target time.Duration // Timing.Queue; 0: the delay moves nothing
	size   uint32        // the present window, least(most) to most
	start  bool          // it doubles: no queue and no congestion was met yet
	byLoss bool          // the delay is not this group's: losses alone cut
	tested bool          // by delay: only to see whether it still is not
	round  round

	back   uint32 // by delay: the window before the present series of cuts; 0: there is none
	rounds int    // by loss: since that began; by delay: the last ones with a burst and a long delay

	cutAt  core.Time // of the last cut by loss, and
	cutOff float64   // the window before it

	until  uint32 // losses of numbers before this one belong to the same window
	sent   uint32 // numbers of that window
	losses uint32 // of them
	halved bool   // for them
	begun  bool   // until is set
}

type sample struct {
	window uint32
	delay  time.Duration
}

// round is what the results of a round have reported.
type round struct {
	from    uint32        // first number that counts
	results uint32        // of them
	fastest time.Duration // from sending to result, of those that were not asked for; 0: none
	full    bool          // the window was used up
}

const (
	firstWindow = 64 // of an epoch: its queue is short on any link of a data centre
	burstWindow = 16 // what one system call sends at the least
	smallWindow = gap + 1
	longDelay   = 3  // targets; more, with a burst on its way, is another's
	believed    = 4  // rounds with a burst and a long delay, until this counts as another's
	testedEvery = 64 // rounds
	cubicGrowth = 4
	cubicCut    = 0.7
)

func newFlow(most uint32, target time.Duration) flow {
	return flow{most: most, target: target, size: min(most, firstWindow), start: true}
}

// least returns the smallest window, which still lets results show what is
// behind.
func (f *flow) least() uint32 { return min(f.most, smallWindow) }

// burst returns the window with which a test looks at the way.
func (f *flow) burst() uint32 { return min(f.most, burstWindow) }

// limit returns the delay at which the window w stops to grow: the target for
// firstWindow. Small windows have a larger one, by which flows of different
// round trips share a link (Swift, 3.5). Below firstWindow it rises fast: beside
// who keeps a queue of its own, whatever others do, some chunks find room. It
// stays below longDelay.
func (f *flow) limit(w uint32) time.Duration {
	t := float64(f.target)
	if w < firstWindow {
		x := float64(w) / firstWindow
		lower := (longDelay - 1) * x * x // alone, so that all machines round it alike
		return time.Duration(t * (longDelay - float64(lower)))
	}
	return time.Duration(t/4) + time.Duration(3*t/4*math.Sqrt(firstWindow/float64(w)))
}

// pause notes that everything before number next is done: what is sent now
// waits for members that begin later, and reports nothing of queues.
func (f *flow) pause(next uint32) { f.round = round{from: next} }

// landed notes the result of number n, which took d, or 0 if it was asked for;
// next is the next number to send.
func (f *flow) landed(now core.Time, n, next uint32, d time.Duration) {
	r := &f.round
	if wire.Newer(r.from, n) {
		return
	}
	if d > 0 && (r.fastest == 0 || d < r.fastest) {
		r.fastest = d
	}
	if r.results++; r.results < f.size {
		return
	}
	if r.full && f.most > 1 {
		f.judge(now, sample{f.size, r.fastest})
	}
	*r = round{from: next}
}

// judge moves the window after a round in which it was used up.
func (f *flow) judge(now core.Time, s sample) {
	switch {
	case f.byLoss && f.rounds < testedEvery:
		f.compete(now)
	case f.byLoss:
		f.test(f.size)
	case f.target == 0 || s.delay > 0 && s.delay <= f.limit(s.window):
		f.back, f.rounds, f.tested = 0, 0, false
		f.grow(s)
	case s.delay > 0:
		f.shrink(s)
	}
}

// grow adds one chunk for each round trip, of which a round is two; at the start
// it doubles, but not beyond what has the delay's limit if it is all queue.
func (f *flow) grow(s sample) {
	next := uint64(f.size) + 2
	if f.start {
		next = 2 * uint64(f.size)
		if f.target > 0 {
			next = min(next, uint64(f.size)*uint64(f.limit(f.size))/uint64(s.delay))
		}
	}
	f.size = uint32(min(max(next, uint64(f.size)), uint64(f.most)))
}

// shrink cuts by half of what the delay is above its limit, down to a burst. A
// delay that stays long then is not this group's.
func (f *flow) shrink(s sample) {
	f.back = max(f.back, f.size)
	if s.window > f.burst() || s.delay <= longDelay*f.target {
		f.rounds = 0
	} else if f.rounds++; f.rounds >= believed && f.back > f.burst() {
		f.size, f.back = f.back, 0
		f.byLoss, f.start, f.tested, f.rounds = true, !f.tested, false, 0
		return
	}
	f.start = false
	over := uint64(s.delay-f.limit(s.window)) * uint64(f.size) / uint64(2*s.delay)
	f.size = max(f.size-max(uint32(over), 1), min(f.size, f.burst()))
}

// test looks whether the delay is another's still. If it is, the window will be
// back again after one round.
func (f *flow) test(back uint32) {
	f.byLoss, f.start, f.tested, f.back, f.rounds = false, true, true, back, believed-1
	f.size = min(f.size, f.burst())
}

// compete grows as CUBIC does after a cut (RFC 9438), and before that doubles, as
// streams that begin do.
func (f *flow) compete(now core.Time) {
	f.rounds++
	if f.start {
		f.size = min(2*f.size, f.most)
		return
	}
	k := math.Cbrt(f.cutOff * (1 - cubicCut) / cubicGrowth)
	t := now.Sub(f.cutAt).Seconds() - k
	grown := float64(cubicGrowth * t * t * t) // alone, so that all machines round it alike
	cubic := uint32(min(max(grown+f.cutOff, 0), float64(f.most)))
	f.size = min(max(f.size+1, min(cubic, f.size+f.size/2)), f.most)
}

// queue is what results report the queues on their way.
type queue uint8

const (
	short    queue = iota
	passing        // the results are slower than they need be
	standing       // even the fastest of the last results are
)

// lost notes that number n had to be sent again, when next was the next number
// to send. A loss is congestion if the results show a queue, or if more than a
// quarter of the window was lost (Veno). A queue that passes, as the member's
// own packets make one, lowers the window, too, but not below a burst: then a
// loss is found and repaired before the rest of W is used up.
func (f *flow) lost(now core.Time, n, next uint32, q queue) {
	if !f.begun || !wire.Newer(f.until, n) {
		f.begun, f.until, f.sent, f.losses, f.halved = true, next, max(next-n, f.size), 0, false
	}
	f.losses++
	floor := f.most
	switch {
	case q == standing || f.losses > max(f.sent/4, 1):
		floor = f.least()
	case q == passing:
		floor = f.burst()
	}
	if f.halved || f.size <= floor {
		return
	}
	f.halved, f.start = true, false
	f.cutAt, f.cutOff = now, float64(f.size)
	switch after := max(uint32(cubicCut*float64(f.size)), floor); {
	case f.byLoss && f.rounds >= testedEvery/4:
		f.test(after) // others cut now, too: so groups that wait for each other meet
	case f.byLoss:
		f.size = after
	default:
		f.size = max(f.size/2, floor)
	}
	f.round = round{from: next}
}
