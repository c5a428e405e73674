package rail

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
)

// reachOracle keeps all that has happened, and states the rule about it plainly.
type reachOracle struct {
	within      time.Duration
	expected    bool
	isMet       bool // and was not lost since
	isLost      bool // and was not met since
	wantedSince core.Time
	troubles    int // calls that failed, and connections that ended, since then
}

// isDue reports whether a peer that is wanted, and to which there is no connection, is to be lost.
func (o *reachOracle) isDue(now core.Time) bool {
	if o.within > 0 && (o.isMet || o.expected && !o.isLost) {
		return now.Sub(o.wantedSince) >= o.within
	}
	return o.troubles > 0
}

// TestReach compares random connections, breaks and calls with the plain rule. A peer is lost when it
// was away for Within, never before, and not later than the deadline says. No call is made while
// there is a connection, or another call; and pauses are short.
func TestReach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		within := time.Duration(rapid.SampledFrom([]int{0, 50, 1000, 5000}).Draw(t, "within")) * time.Millisecond
		r := DefaultReach(within)
		r.Expected = rapid.Bool().Draw(t, "expected")
		o := reachOracle{within: within, expected: r.Expected, wantedSince: core.Never}
		now := core.Time(rapid.Int64Range(0, 1<<40).Draw(t, "now"))
		link, isCalled, isWanted := NoLink, false, false
		var called core.Time
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			// Time passes, to the deadline at most: it is asked in time.
			at := now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "passes")) * time.Millisecond)
			now = at.Earlier(r.Deadline())
			was := link
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0:
				link = NoLink
			case 1:
				link = max(link, Connected)
			case 2:
				link = InSession
			case 3:
				if isCalled {
					r.Failed(now)
					isCalled = false
					o.troubles++
				}
			case 4:
				isWanted = !isWanted
			}
			if was != NoLink && link == NoLink {
				o.troubles++
			}
			if was == NoLink && link != NoLink || was != NoLink && link == NoLink {
				isCalled = false
			}
			switch {
			case link == InSession:
				o.isMet, o.isLost, o.wantedSince, o.troubles = true, false, core.Never, 0
			case !isWanted:
				o.wantedSince, o.troubles = core.Never, 0
			case o.wantedSince == core.Never:
				o.wantedSince = now
			}
			call, isLost := r.Step(now, link, isWanted)
			if want := isWanted && link == NoLink && o.isDue(now); isLost != want {
				t.Fatalf("at %v: lost %v, want %v: %+v", now, isLost, want, o)
			}
			if isLost {
				o.isMet, o.isLost, o.wantedSince, o.troubles = false, true, core.Never, 0
				isWanted = false // it has failed
				r.Step(now, link, false)
				continue
			}
			if call && (isCalled || link != NoLink || !isWanted) {
				t.Fatalf("at %v: a call, while another is under way (%v), link %d, wanted %v", now, isCalled, link, isWanted)
			}
			if call {
				isCalled, called = true, now
			}
			waits := isWanted && link == NoLink && !isCalled
			if waits && r.Deadline() > now.Add(r.RetryMax) {
				t.Fatalf("at %v: the next call is at %v, the last was at %v", now, r.Deadline(), called)
			}
			if r.Deadline() <= now {
				t.Fatalf("at %v: it wants to be asked at %v", now, r.Deadline())
			}
		}
	})
}

// TestReachPauses: the first call after a break is made at once; then the pauses double, up to the
// longest, whether calls fail or connections break at once; one that lasts ends that.
func TestReachPauses(t *testing.T) {
	for _, isRefused := range []bool{true, false} {
		r := DefaultReach(time.Hour)
		now := core.Time(0)
		r.Step(now, InSession, true)
		now = now.Add(time.Second)
		for round := range 2 {
			call, _ := r.Step(now, NoLink, true)
			if !call {
				t.Fatal("no call after the break")
			}
			var pauses []time.Duration
			for range 8 {
				if isRefused {
					r.Failed(now)
				} else {
					r.Step(now, InSession, true)
				}
				if call, _ := r.Step(now, NoLink, true); call { // the first connection that does not last
					pauses = append(pauses, 0)
					continue
				}
				at := r.Deadline()
				pauses = append(pauses, at.Sub(now)/time.Millisecond)
				now = at
				if call, _ := r.Step(now, NoLink, true); !call {
					t.Fatal("no call after the pause")
				}
			}
			want := [8]time.Duration{10, 20, 40, 80, 160, 200, 200, 200}
			if !isRefused {
				want = [8]time.Duration{0, 20, 40, 80, 160, 200, 200, 200}
			}
			if [8]time.Duration(pauses) != want {
				t.Errorf("round %d, refused %v: pauses of %v ms", round, isRefused, pauses)
			}
			r.Step(now, InSession, true)
			now = now.Add(200 * time.Millisecond)
		}
	}
}

// TestReachSilent: of a peer that was silent for long, nothing is awaited any more when its connection
// ends; unless nothing is wanted then.
func TestReachSilent(t *testing.T) {
	for _, isWanted := range []bool{true, false} {
		r := DefaultReach(5 * time.Second)
		r.Step(0, InSession, isWanted)
		r.Silent(6000*ms, 5*time.Second)
		if call, isLost := r.Step(6000*ms, NoLink, isWanted); isLost != isWanted || call {
			t.Errorf("wanted %v: lost %v, called %v", isWanted, isLost, call)
		}
		if call, isLost := r.Step(6001*ms, NoLink, true); isLost || !call {
			t.Errorf("later: lost %v, called %v", isLost, call)
		}
	}
}

// TestReachAskedLate: a host that was halted itself calls once more before it takes the peer for lost;
// one that is always late finds it lost, too.
func TestReachAskedLate(t *testing.T) {
	r := DefaultReach(5 * time.Second)
	r.Step(0, InSession, true)
	r.Step(1000*ms, NoLink, true)
	r.Failed(1001 * ms)
	r.Step(1001*ms, NoLink, true)
	if call, isLost := r.Step(60_000*ms, NoLink, true); isLost || !call {
		t.Errorf("after a halt: lost %v, called %v", isLost, call)
	}
	r.Failed(60_001 * ms)
	for now := 61_000 * ms; now < 70_000*ms; now += 1000 * ms {
		call, isLost := r.Step(now, NoLink, true)
		if isLost {
			return
		}
		if call {
			r.Failed(now)
			r.Step(now, NoLink, true)
		}
	}
	t.Error("it is never lost")
}
