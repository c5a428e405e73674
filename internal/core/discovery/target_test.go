package discovery

import (
	"slices"
	"strings"
	"testing"
)

func (t *trial) alarmed(kind AlarmKind) []Alarm {
	return slices.DeleteFunc(t.c.Alarms(), func(a Alarm) bool { return a.Kind != kind })
}

// An address that has failed, was dropped because the switch was reached at another one, and
// is dialled and fails again, is away again, and none of the dials that may be under way.
func TestFailsAgainAfterDrop(t *testing.T) {
	tr := dialing(t, "10.0.0.1:74", "10.0.0.9:74")
	tr.do("connect 10.0.0.9:74", "report 10.0.0.9:74 leaf-9 | e1 up > leaf-0/e1,at=10.0.0.1:74,at=10.0.0.5",
		"connect 10.0.0.1:74", "report 10.0.0.1:74 leaf-0 | e1 up > leaf-9/e1", "wait 1s",
		"lose 10.0.0.1:74", "fail 10.0.0.1:74", "wait 1s",
		"connect 10.0.0.5:74", "report 10.0.0.5:74 leaf-0 | e1 up > leaf-9/e1", "wait 1s",
		"lose 10.0.0.5:74", "wait 1s", "fail 10.0.0.5:74", "fail 10.0.0.1:74")
	check(t, tr.c)
	if is := tr.c.targets["10.0.0.1:74"].state; is != away || tr.c.calls.open != 0 {
		t.Errorf("state %d, and %d dials are under way", is, tr.c.calls.open)
	}
}

// A seed that was dropped, because its switch was reached at another address, is dialled
// again when that is lost.
func TestSeedIsDialledAgain(t *testing.T) {
	tr := dialing(t, "10.0.0.1:74", "10.0.0.9:74")
	text := tr.do("connect 10.0.0.9:74", "report 10.0.0.9:74 leaf-9 | e1 up > leaf-0/e1,at=10.0.0.5:74",
		"connect 10.0.0.1:74", "report 10.0.0.1:74 leaf-0 | e1 up > leaf-9/e1", "wait 1s",
		"lose 10.0.0.1:74", "wait 1s",
		"connect 10.0.0.5:74", "report 10.0.0.5:74 leaf-0 | e1 up > leaf-9/e1", "wait 1s")
	if !strings.Contains(text, "drop 10.0.0.1:74\n") {
		t.Fatalf("no drop:\n%s", text)
	}
	if text = tr.do("lose 10.0.0.5:74"); !strings.Contains(text, "dial 10.0.0.1:74\n") {
		t.Errorf("the switch is lost at its other address:\n%s", text)
	}
	tr.do("connect 10.0.0.1:74", "report 10.0.0.1:74 leaf-0 | e1 up > leaf-9/e1")
	if n := tr.c.devices["leaf-0"]; n == nil || n.target.address != "10.0.0.1:74" {
		t.Errorf("leaf-0 is not reached by the seed: %+v", n)
	}
}

// Two seeds that are one switch are no contradiction.
func TestTwoSeedsOfOneSwitch(t *testing.T) {
	for name, cert := range map[string]string{"plain": "", "certified": " leaf-0"} {
		t.Run(name, func(t *testing.T) {
			tr := dialing(t, "10.0.0.1:74", "10.0.0.2:74")
			text := tr.do("connect 10.0.0.1:74"+cert, "report 10.0.0.1:74 leaf-0 | e1 up",
				"connect 10.0.0.2:74"+cert, "report 10.0.0.2:74 leaf-0 | e1 up", "wait 1m")
			if alarms := tr.c.Alarms(); len(alarms) > 0 || !strings.Contains(text, "drop 10.0.0.2:74\n") {
				t.Errorf("%v\n%s", alarms, text)
			}
		})
	}
}

// The alarm of a target that is away has the latest reason.
func TestUnreachableHasTheLatestReason(t *testing.T) {
	tr := dialing(t, "10.0.0.1:74")
	tr.do("connect 10.0.0.1:74", "report 10.0.0.1:74 leaf-0 | e1 up", "lose 10.0.0.1:74", "wait 1m")
	tr.step(Input{Kind: Failed, Target: "10.0.0.1:74", Why: "first"})
	tr.step(Input{Kind: Failed, Target: "10.0.0.1:74", Why: "second"})
	if is := tr.alarmed(Unreachable); len(is) != 1 || is[0].Text != "second" {
		t.Errorf("%v", is)
	}
}

// A report that repeats what was said before allocates nothing for its ports.
func TestRepeatIsCheap(t *testing.T) {
	tr := dialing(t, "10.0.0.1:74")
	tr.do("connect 10.0.0.1:74")
	report := func() Input {
		f := crowd(40)[0]
		return Input{Kind: Reported, Target: "10.0.0.1:74", Facts: f}
	}
	tr.step(report())
	again := report()
	if n := testing.AllocsPerRun(10, func() { tr.step(again) }); n > 16 {
		t.Errorf("%v allocations for a report that repeats", n)
	}
}
