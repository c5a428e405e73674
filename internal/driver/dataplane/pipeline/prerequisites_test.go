package pipeline

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
	"github.com/tributary-fabric/tributary/p4"
)

// round has the target checked as often as makes something missing, and waits each time
// until the frames are back that will be.
func (b *bench) round(back ...way) {
	b.t.Helper()
	for range 1 + maxMissed {
		sent := make(chan struct{})
		b.jobs.Put(func(context.Context) {
			b.driver.checks.next = time.Unix(1, 0)
			b.driver.check(time.Now())
			close(sent)
		})
		<-sent
		for is := false; !is; {
			seen := make(chan bool, 1)
			b.jobs.Put(func(context.Context) {
				all := true
				for _, w := range back {
					all = all && b.driver.checks.back[w]
				}
				seen <- all
			})
			is = <-seen
		}
	}
}

// checking waits until the target is checked.
func (b *bench) checking() {
	b.t.Helper()
	for is := false; !is; {
		seen := make(chan bool, 1)
		b.jobs.Put(func(context.Context) { seen <- b.driver.stage == usable })
		is = <-seen
	}
}

// TestPrerequisites has a target that lacks the loop, or the CPU port, when the agent
// meets it, gets it, and loses it again. Its trees stay as they are meanwhile.
func TestPrerequisites(t *testing.T) {
	for w, wires := range map[way]struct{ from, to uint64 }{
		loopWay: {p4.LoopOutPort, p4.LoopInPort}, cpuWay: {p4.CPUPort, p4.CPUPort},
	} {
		target := newTarget(t)
		target.Cable(wires.from, 0)
		b := newBench(t, configOf(target.Address()))
		b.checking()
		b.round(1 - w)
		b.unusable(missing[w].Error())
		b.Open(1, 7)
		if o := await[dataplane.Opened](b); !errors.Is(o.Err, ErrUnusable) || !errors.Is(o.Err, missing[w]) {
			t.Errorf("a tree without %v: %v", missing[w], o.Err)
		}
		target.Cable(wires.from, wires.to)
		b.round(cpuWay, loopWay)
		b.usable()
		b.tree(1, 7)
		b.installs(1, epochOf(7, 2, 8))
		held := rows(target)
		target.Cable(wires.from, 0)
		b.round(1 - w)
		b.unusable(missing[w].Error())
		if err := b.epoch(1, epochOf(7, 4, 8)); !errors.Is(err, missing[w]) {
			t.Errorf("an epoch without %v: %v", missing[w], err)
		}
		if n := rows(target); n != held {
			t.Errorf("without %v it holds %d entries, before %d", missing[w], n, held)
		}
		b.Retire(1, 2)
		if b.counted(); rows(target) >= held {
			t.Error("what is retired is not removed")
		}
		target.Cable(wires.from, wires.to)
		b.round(cpuWay, loopWay)
		b.usable()
		b.installs(1, epochOf(7, 6, 8))
	}
}

// TestSetDown has a target that hears nothing while an interface of its own is set down:
// the reason names that, and is no longer there when the interface is set up.
func TestSetDown(t *testing.T) {
	target := newTarget(t)
	b := newBench(t, configOf(target.Address()))
	b.usable()
	b.SetDown([]string{"port2"})
	b.round(cpuWay, loopWay) // another target than bmv2 goes on
	b.tree(1, 7)
	target.Cable(p4.LoopOutPort, 0)
	b.round(cpuWay)
	for deaf := false; !deaf; {
		o := await[dataplane.Offer](b)
		deaf = o.Deaf
		if want := "target " + target.Address() + ": " + ErrSetDown.Error() + ": port2"; o.Unusable != want {
			t.Errorf("offered %+v, want %q", o, want)
		}
	}
	b.SetDown(nil)
	for range quickChecks / maxMissed {
		b.round(cpuWay) // and the loop is still not there
	}
	if o := await[dataplane.Offer](b); o.Deaf || o.Unusable != "target "+target.Address()+": "+ErrNoLoop.Error() {
		t.Errorf("offered %+v", o)
	}
	b.SetDown([]string{"port2"})
	if o := await[dataplane.Offer](b); !o.Deaf {
		t.Errorf("offered %+v", o)
	}
	target.Cable(p4.LoopOutPort, p4.LoopInPort)
	b.SetDown(nil)
	b.usable()
}

// TestQuickChecks: after an interface was set down or up the next checks follow at once.
func TestQuickChecks(t *testing.T) {
	var c checks
	c.restart()
	now := time.Unix(1, 0)
	c.quick = quickChecks
	for range quickChecks {
		if c.frames(now, checkInterval); c.next != now.Add(checkInterval/quicker) {
			t.Fatalf("the next check is %v later", c.next.Sub(now))
		}
	}
	if c.frames(now, checkInterval); c.next != now.Add(checkInterval) {
		t.Errorf("the next check is %v later", c.next.Sub(now))
	}
}

// TestALoopTheWrongWayRound does not take for a loop what comes back by another port.
func TestALoopTheWrongWayRound(t *testing.T) {
	target := newTarget(t)
	target.Cable(p4.LoopOutPort, p4.LoopOutPort)
	b := newBench(t, configOf(target.Address()))
	b.checking()
	b.round(cpuWay)
	b.unusable(ErrNoLoop.Error())
}

// TestChecks: a way is missing when maxMissed frames in a row were, where those of the
// loop only count if those to the CPU port came back; one that comes back ends that.
func TestChecks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c checks
		c.restart()
		frames := c.frames(time.Unix(1, 0), 0)
		var lost [ways]int  // in a row
		var seen [ways]bool // since the last that was reported missing
		for range rapid.IntRange(1, 40).Draw(t, "rounds") {
			back := [ways]bool{rapid.Bool().Draw(t, "cpu"), rapid.Bool().Draw(t, "loop")}
			for w := range ways {
				if back[w] {
					c.returned(arrives[w], frames[w].Payload[ethernetSize:])
					lost[w], seen[w] = 0, true
				}
			}
			frames = c.frames(time.Unix(1, 0), 0)
			for w := range ways {
				if !back[w] && (w == cpuWay || back[cpuWay]) {
					lost[w]++
				}
				if lost[w] >= maxMissed {
					seen[w] = false
				}
			}
			var want error
			for w := ways; w > 0; w-- {
				switch {
				case seen[w-1]:
				case lost[w-1] >= maxMissed:
					want = missing[w-1]
				default:
					want = errUnchecked
				}
			}
			if !errors.Is(c.lack, want) || c.lack != nil && want == nil {
				t.Fatalf("lost %v: %v, want %v", lost, c.lack, want)
			}
		}
	})
}
