package epoch

import (
	"strings"
	"testing"
)

// The states in which rank 2, between 0 and 3, can be, and how it gets there.
var coreStates = map[string][]string{
	"running":    nil,
	"alarmed":    {"lost 1"},
	"collecting": {"from 0 collect round=1"},
	"reported":   {"from 0 collect round=1", "from 3 report round=1"},
	"entered":    {"from 0 collect round=1", "from 3 report round=1", "from 0 decide round=1 epoch=3"},
	"failing":    {"failed dead rank=7"},
	"left":       {"member last", "from 3 goodbye"},
	"ended":      {"from 0 fail dead rank=7"},
}

// transitions reports, for a state and an input, the state after it, and what is
// put out.
var transitions = []struct{ from, input, to, out string }{
	{"running", "lost 1", "running 1 round=0 alarm", "to 0: alarm epoch=1 rank=2: no answer"},
	{"alarmed", "lost 1", "running 1 round=0 alarm", ""},
	{"collecting", "lost 1", "collecting 1 round=1", ""},
	{"reported", "lost 1", "collecting 1 round=1 reported", ""},
	{"entered", "lost 1", "running 3 round=1", ""},
	{"failing", "lost 1", "running 1 round=0 alarm failing", "to 0: alarm epoch=1 rank=2: no answer"},
	{"left", "lost 1", "left 1 round=0", ""},
	{"ended", "lost 1", "ended 1 round=0", ""},

	{"running", "lost 3", "running 1 round=0", ""},
	{"alarmed", "lost 3", "running 1 round=0 alarm", ""},
	{"collecting", "lost 3", "collecting 1 round=1", ""},
	{"reported", "lost 3", "collecting 1 round=1 reported", ""},
	{"entered", "lost 3", "running 3 round=1 alarm", "to 0: alarm epoch=3 rank=2: no answer"},
	{"failing", "lost 3", "running 1 round=0 failing", ""},
	{"left", "lost 3", "left 1 round=0", ""},
	{"ended", "lost 3", "ended 1 round=0", ""},

	{"running", "offer 4", "running 1 round=0", ""},
	{"alarmed", "offer 4", "running 1 round=0 alarm", ""},
	{"collecting", "offer 4", "collecting 1 round=1", ""},
	{"reported", "offer 4", "collecting 1 round=1 reported", ""},
	{"entered", "offer 4", "running 3 round=1", ""},
	{"failing", "offer 4", "running 1 round=0 failing", ""},
	{"left", "offer 4", "left 1 round=0", ""},
	{"ended", "offer 4", "ended 1 round=0", ""},

	{"running", "withdraw 1", "running 1 round=0 alarm", "to 0: alarm epoch=1 rank=2: the manager withdrew the tree"},
	{"alarmed", "withdraw 1", "running 1 round=0 alarm", ""},
	{"collecting", "withdraw 1", "collecting 1 round=1", ""},
	{"reported", "withdraw 1", "collecting 1 round=1 reported", ""},
	{"entered", "withdraw 1", "running 3 round=1", ""},
	{"failing", "withdraw 1", "running 1 round=0 alarm failing", "to 0: alarm epoch=1 rank=2: the manager withdrew the tree"},
	{"left", "withdraw 1", "left 1 round=0", ""},
	{"ended", "withdraw 1", "ended 1 round=0", ""},

	{"running", "from 0 collect round=1", "collecting 1 round=1", "member: freeze; to 3: collect round=1 epoch=1"},
	{"alarmed", "from 0 collect round=1", "collecting 1 round=1 alarm", "member: freeze; to 3: collect round=1 epoch=1"},
	{"collecting", "from 0 collect round=1", "collecting 1 round=1", ""},
	{"reported", "from 0 collect round=1", "collecting 1 round=1 reported", ""},
	{"entered", "from 0 collect round=1", "running 3 round=1", ""},
	{"failing", "from 0 collect round=1", "collecting 1 round=1 failing", "member: freeze; to 3: collect round=1 epoch=1"},
	{"left", "from 0 collect round=1", "left 1 round=0", ""},
	{"ended", "from 0 collect round=1", "ended 1 round=0", ""},

	{"running", "from 0 collect round=2", "running 1 round=0", ""},
	{"alarmed", "from 0 collect round=2", "running 1 round=0 alarm", ""},
	{"collecting", "from 0 collect round=2", "collecting 1 round=1", ""},
	{"reported", "from 0 collect round=2", "collecting 1 round=1 reported", ""},
	{"entered", "from 0 collect round=2", "collecting 3 round=2", "member: freeze; to 3: collect round=2 epoch=3"},
	{"failing", "from 0 collect round=2", "running 1 round=0 failing", ""},
	{"left", "from 0 collect round=2", "left 1 round=0", ""},
	{"ended", "from 0 collect round=2", "ended 1 round=0", ""},

	{"running", "from 3 report round=1", "running 1 round=0", ""},
	{"alarmed", "from 3 report round=1", "running 1 round=0 alarm", ""},
	{"collecting", "from 3 report round=1", "collecting 1 round=1 reported", "to 0: report round=1 base=0 offers=[] held=[] lack=[]"},
	{"reported", "from 3 report round=1", "collecting 1 round=1 reported", ""},
	{"entered", "from 3 report round=1", "running 3 round=1", ""},
	{"failing", "from 3 report round=1", "running 1 round=0 failing", ""},
	{"left", "from 3 report round=1", "left 1 round=0", ""},
	{"ended", "from 3 report round=1", "ended 1 round=0", ""},

	{"running", "from 0 decide round=1 epoch=5", "running 1 round=0", ""},
	{"alarmed", "from 0 decide round=1 epoch=5", "running 1 round=0 alarm", ""},
	{"collecting", "from 0 decide round=1 epoch=5", "collecting 1 round=1", ""},
	{"reported", "from 0 decide round=1 epoch=5", "running 5 round=1", "member: enter 5 over hosts base=0 held=[]: ; to 3: decide round=1 epoch=5 base=0 held=[] give=[] rank=0:"},
	{"entered", "from 0 decide round=1 epoch=5", "running 3 round=1", ""},
	{"failing", "from 0 decide round=1 epoch=5", "running 1 round=0 failing", ""},
	{"left", "from 0 decide round=1 epoch=5", "left 1 round=0", ""},
	{"ended", "from 0 decide round=1 epoch=5", "ended 1 round=0", ""},

	{"running", "from 3 alarm epoch=1 rank=9", "running 1 round=0 alarm", "to 0: alarm epoch=1 rank=9: no answer"},
	{"alarmed", "from 3 alarm epoch=1 rank=9", "running 1 round=0 alarm", ""},
	{"collecting", "from 3 alarm epoch=1 rank=9", "collecting 1 round=1", ""},
	{"reported", "from 3 alarm epoch=1 rank=9", "collecting 1 round=1 reported", ""},
	{"entered", "from 3 alarm epoch=1 rank=9", "running 3 round=1", ""},
	{"failing", "from 3 alarm epoch=1 rank=9", "running 1 round=0 alarm failing", "to 0: alarm epoch=1 rank=9: no answer"},
	{"left", "from 3 alarm epoch=1 rank=9", "left 1 round=0", ""},
	{"ended", "from 3 alarm epoch=1 rank=9", "ended 1 round=0", ""},

	{"running", "from 3 alarm epoch=3 rank=9", "running 1 round=0", ""},
	{"alarmed", "from 3 alarm epoch=3 rank=9", "running 1 round=0 alarm", ""},
	{"collecting", "from 3 alarm epoch=3 rank=9", "collecting 1 round=1", ""},
	{"reported", "from 3 alarm epoch=3 rank=9", "collecting 1 round=1 reported", ""},
	{"entered", "from 3 alarm epoch=3 rank=9", "running 3 round=1 alarm", "to 0: alarm epoch=3 rank=9: no answer"},
	{"failing", "from 3 alarm epoch=3 rank=9", "running 1 round=0 failing", ""},
	{"left", "from 3 alarm epoch=3 rank=9", "left 1 round=0", ""},
	{"ended", "from 3 alarm epoch=3 rank=9", "ended 1 round=0", ""},

	{"running", "from 3 holding epoch=4", "running 1 round=0", ""},
	{"alarmed", "from 3 holding epoch=4", "running 1 round=0 alarm", ""},
	{"collecting", "from 3 holding epoch=4", "collecting 1 round=1", ""},
	{"reported", "from 3 holding epoch=4", "collecting 1 round=1 reported", ""},
	{"entered", "from 3 holding epoch=4", "running 3 round=1", ""},
	{"failing", "from 3 holding epoch=4", "running 1 round=0 failing", ""},
	{"left", "from 3 holding epoch=4", "left 1 round=0", ""},
	{"ended", "from 3 holding epoch=4", "ended 1 round=0", ""},

	{"running", "from 3 fill round=1 chunk=0", "running 1 round=0", ""},
	{"alarmed", "from 3 fill round=1 chunk=0", "running 1 round=0 alarm", ""},
	{"collecting", "from 3 fill round=1 chunk=0", "collecting 1 round=1", ""},
	{"reported", "from 3 fill round=1 chunk=0", "collecting 1 round=1 reported", ""},
	{"entered", "from 3 fill round=1 chunk=0", "running 3 round=1", "member: fill 0 [77] exp=-7"},
	{"failing", "from 3 fill round=1 chunk=0", "running 1 round=0 failing", ""},
	{"left", "from 3 fill round=1 chunk=0", "left 1 round=0", ""},
	{"ended", "from 3 fill round=1 chunk=0", "ended 1 round=0", ""},

	{"running", "from 3 fail dead rank=9", "running 1 round=0 failing", "to 0: fail dead rank=9"},
	{"alarmed", "from 3 fail dead rank=9", "running 1 round=0 alarm failing", "to 0: fail dead rank=9"},
	{"collecting", "from 3 fail dead rank=9", "collecting 1 round=1 failing", "to 0: fail dead rank=9"},
	{"reported", "from 3 fail dead rank=9", "collecting 1 round=1 reported failing", "to 0: fail dead rank=9"},
	{"entered", "from 3 fail dead rank=9", "running 3 round=1 failing", "to 0: fail dead rank=9"},
	{"failing", "from 3 fail dead rank=9", "running 1 round=0 failing", ""},
	{"left", "from 3 fail dead rank=9", "left 1 round=0", ""},
	{"ended", "from 3 fail dead rank=9", "ended 1 round=0", ""},

	{"running", "from 0 fail dead rank=9", "ended 1 round=0", "member: end dead rank=9; to 3: fail dead rank=9"},
	{"alarmed", "from 0 fail dead rank=9", "ended 1 round=0 alarm", "member: end dead rank=9; to 3: fail dead rank=9"},
	{"collecting", "from 0 fail dead rank=9", "ended 1 round=1", "member: end dead rank=9; to 3: fail dead rank=9"},
	{"reported", "from 0 fail dead rank=9", "ended 1 round=1", "member: end dead rank=9; to 3: fail dead rank=9"},
	{"entered", "from 0 fail dead rank=9", "ended 3 round=1", "member: end dead rank=9; to 3: fail dead rank=9"},
	{"failing", "from 0 fail dead rank=9", "ended 1 round=0", "member: end dead rank=9; to 3: fail dead rank=9"},
	{"left", "from 0 fail dead rank=9", "left 1 round=0", ""},
	{"ended", "from 0 fail dead rank=9", "ended 1 round=0", ""},

	{"running", "from 3 goodbye", "running 1 round=0 failing", "to 0: fail internal rank=2: rank 3 has left the group, and rank 2 was not leaving"},
	{"alarmed", "from 3 goodbye", "running 1 round=0 alarm failing", "to 0: fail internal rank=2: rank 3 has left the group, and rank 2 was not leaving"},
	{"collecting", "from 3 goodbye", "collecting 1 round=1 failing", "to 0: fail internal rank=2: rank 3 has left the group, and rank 2 was not leaving"},
	{"reported", "from 3 goodbye", "collecting 1 round=1 reported failing", "to 0: fail internal rank=2: rank 3 has left the group, and rank 2 was not leaving"},
	{"entered", "from 3 goodbye", "running 3 round=1 failing", "to 0: fail internal rank=2: rank 3 has left the group, and rank 2 was not leaving"},
	{"failing", "from 3 goodbye", "running 1 round=0 failing", ""},
	{"left", "from 3 goodbye", "left 1 round=0", ""},
	{"ended", "from 3 goodbye", "ended 1 round=0", ""},

	{"running", "from 0 goodbye", "ended 1 round=0", "member: end internal rank=2: rank 0 has left the group, and rank 2 was not leaving; to 3: fail internal rank=2: rank 0 has left the group, and rank 2 was not leaving"},
	{"alarmed", "from 0 goodbye", "ended 1 round=0 alarm", "member: end internal rank=2: rank 0 has left the group, and rank 2 was not leaving; to 3: fail internal rank=2: rank 0 has left the group, and rank 2 was not leaving"},
	{"collecting", "from 0 goodbye", "ended 1 round=1", "member: end internal rank=2: rank 0 has left the group, and rank 2 was not leaving; to 3: fail internal rank=2: rank 0 has left the group, and rank 2 was not leaving"},
	{"reported", "from 0 goodbye", "ended 1 round=1", "member: end internal rank=2: rank 0 has left the group, and rank 2 was not leaving; to 3: fail internal rank=2: rank 0 has left the group, and rank 2 was not leaving"},
	{"entered", "from 0 goodbye", "ended 3 round=1", "member: end internal rank=2: rank 0 has left the group, and rank 2 was not leaving; to 3: fail internal rank=2: rank 0 has left the group, and rank 2 was not leaving"},
	{"failing", "from 0 goodbye", "ended 1 round=0", "member: end dead rank=7; to 3: fail dead rank=7"},
	{"left", "from 0 goodbye", "left 1 round=0", "gone"},
	{"ended", "from 0 goodbye", "ended 1 round=0", ""},

	{"running", "from 0 notice group=7", "running 1 round=0", "to 3: notice group=7; notice 7"},
	{"alarmed", "from 0 notice group=7", "running 1 round=0 alarm", "to 3: notice group=7; notice 7"},
	{"collecting", "from 0 notice group=7", "collecting 1 round=1", "to 3: notice group=7; notice 7"},
	{"reported", "from 0 notice group=7", "collecting 1 round=1 reported", "to 3: notice group=7; notice 7"},
	{"entered", "from 0 notice group=7", "running 3 round=1", "to 3: notice group=7; notice 7"},
	{"failing", "from 0 notice group=7", "running 1 round=0 failing", "to 3: notice group=7; notice 7"},
	{"left", "from 0 notice group=7", "left 1 round=0", "to 3: notice group=7; notice 7"},
	{"ended", "from 0 notice group=7", "ended 1 round=0", ""},

	{"running", "dead 3", "running 1 round=0 failing", "to 0: fail dead rank=3: no answer"},
	{"alarmed", "dead 3", "running 1 round=0 alarm failing", "to 0: fail dead rank=3: no answer"},
	{"collecting", "dead 3", "collecting 1 round=1 failing", "to 0: fail dead rank=3: no answer"},
	{"reported", "dead 3", "collecting 1 round=1 reported failing", "to 0: fail dead rank=3: no answer"},
	{"entered", "dead 3", "running 3 round=1 failing", "to 0: fail dead rank=3: no answer"},
	{"failing", "dead 3", "running 1 round=0 failing", ""},
	{"left", "dead 3", "left 1 round=0", ""},
	{"ended", "dead 3", "ended 1 round=0", ""},

	{"running", "dead 0", "ended 1 round=0", "member: end dead rank=0: no answer; to 3: fail dead rank=0: no answer"},
	{"alarmed", "dead 0", "ended 1 round=0 alarm", "member: end dead rank=0: no answer; to 3: fail dead rank=0: no answer"},
	{"collecting", "dead 0", "ended 1 round=1", "member: end dead rank=0: no answer; to 3: fail dead rank=0: no answer"},
	{"reported", "dead 0", "ended 1 round=1", "member: end dead rank=0: no answer; to 3: fail dead rank=0: no answer"},
	{"entered", "dead 0", "ended 3 round=1", "member: end dead rank=0: no answer; to 3: fail dead rank=0: no answer"},
	{"failing", "dead 0", "ended 1 round=0", "member: end dead rank=7; to 3: fail dead rank=7"},
	{"left", "dead 0", "left 1 round=0", "gone"},
	{"ended", "dead 0", "ended 1 round=0", ""},

	{"running", "failed cancel rank=2", "ended 1 round=0", "member: end cancel rank=2; to 0: fail cancel rank=2; to 3: fail cancel rank=2"},
	{"alarmed", "failed cancel rank=2", "ended 1 round=0 alarm", "member: end cancel rank=2; to 0: fail cancel rank=2; to 3: fail cancel rank=2"},
	{"collecting", "failed cancel rank=2", "ended 1 round=1", "member: end cancel rank=2; to 0: fail cancel rank=2; to 3: fail cancel rank=2"},
	{"reported", "failed cancel rank=2", "ended 1 round=1", "member: end cancel rank=2; to 0: fail cancel rank=2; to 3: fail cancel rank=2"},
	{"entered", "failed cancel rank=2", "ended 3 round=1", "member: end cancel rank=2; to 0: fail cancel rank=2; to 3: fail cancel rank=2"},
	{"failing", "failed cancel rank=2", "ended 1 round=0", "member: end cancel rank=2; to 0: fail cancel rank=2; to 3: fail cancel rank=2"},
	{"left", "failed cancel rank=2", "left 1 round=0", ""},
	{"ended", "failed cancel rank=2", "ended 1 round=0", ""},

	{"running", "last-done", "left 1 round=0", "to 0: goodbye; to 3: goodbye"},
	{"alarmed", "last-done", "left 1 round=0 alarm", "to 0: goodbye; to 3: goodbye"},
	{"collecting", "last-done", "left 1 round=1", "to 0: goodbye; to 3: goodbye"},
	{"reported", "last-done", "left 1 round=1", "to 0: goodbye; to 3: goodbye"},
	{"entered", "last-done", "left 3 round=1", "to 0: goodbye; to 3: goodbye"},
	{"failing", "last-done", "left 1 round=0 failing", "to 0: goodbye; to 3: goodbye"},
	{"left", "last-done", "left 1 round=0", ""},
	{"ended", "last-done", "ended 1 round=0", ""},

	{"running", "connected 0", "running 1 round=0", ""},
	{"alarmed", "connected 0", "running 1 round=0 alarm", "to 0: alarm epoch=1 rank=2: no answer"},
	{"collecting", "connected 0", "collecting 1 round=1", ""},
	{"reported", "connected 0", "collecting 1 round=1 reported", "to 0: report round=1 base=0 offers=[] held=[] lack=[]"},
	{"entered", "connected 0", "running 3 round=1", ""},
	{"failing", "connected 0", "running 1 round=0 failing", "to 0: fail dead rank=7"},
	{"left", "connected 0", "left 1 round=0", "to 0: goodbye"},
	{"ended", "connected 0", "ended 1 round=0", "to 0: fail dead rank=7"},

	{"running", "connected 3", "running 1 round=0", ""},
	{"alarmed", "connected 3", "running 1 round=0 alarm", ""},
	{"collecting", "connected 3", "collecting 1 round=1", "to 3: collect round=1 epoch=1"},
	{"reported", "connected 3", "collecting 1 round=1 reported", ""},
	{"entered", "connected 3", "running 3 round=1", "to 3: decide round=1 epoch=3 base=0 held=[] give=[] rank=0:"},
	{"failing", "connected 3", "running 1 round=0 failing", ""},
	{"left", "connected 3", "left 1 round=0", "to 3: goodbye"},
	{"ended", "connected 3", "ended 1 round=0", "to 3: fail dead rank=7"},

	{"running", "from 9 fail dead rank=1", "running 1 round=0", ""},
	{"alarmed", "from 9 fail dead rank=1", "running 1 round=0 alarm", ""},
	{"collecting", "from 9 fail dead rank=1", "collecting 1 round=1", ""},
	{"reported", "from 9 fail dead rank=1", "collecting 1 round=1 reported", ""},
	{"entered", "from 9 fail dead rank=1", "running 3 round=1", ""},
	{"failing", "from 9 fail dead rank=1", "running 1 round=0 failing", ""},
	{"left", "from 9 fail dead rank=1", "left 1 round=0", ""},
	{"ended", "from 9 fail dead rank=1", "ended 1 round=0", ""},

	{"running", "rested 5", "running 1 round=0", ""},
	{"alarmed", "rested 5", "running 1 round=0 alarm", ""},
	{"collecting", "rested 5", "collecting 1 round=1", ""},
	{"reported", "rested 5", "collecting 1 round=1 reported", ""},
	{"entered", "rested 5", "running 3 round=1", ""},
	{"failing", "rested 5", "running 1 round=0 failing", ""},
	{"left", "rested 5", "left 1 round=0", ""},
	{"ended", "rested 5", "ended 1 round=0", ""},

	{"running", "from 3 settled before=5", "running 1 round=0", ""},
	{"alarmed", "from 3 settled before=5", "running 1 round=0 alarm", ""},
	{"collecting", "from 3 settled before=5", "collecting 1 round=1", ""},
	{"reported", "from 3 settled before=5", "collecting 1 round=1 reported", ""},
	{"entered", "from 3 settled before=5", "running 3 round=1", ""},
	{"failing", "from 3 settled before=5", "running 1 round=0 failing", ""},
	{"left", "from 3 settled before=5", "left 1 round=0", ""},
	{"ended", "from 3 settled before=5", "ended 1 round=0", ""},

	{"running", "from 0 settled before=5", "running 1 round=0", "member: forget before 5; to 3: settled before=5"},
	{"alarmed", "from 0 settled before=5", "running 1 round=0 alarm", "member: forget before 5; to 3: settled before=5"},
	{"collecting", "from 0 settled before=5", "collecting 1 round=1", "member: forget before 5; to 3: settled before=5"},
	{"reported", "from 0 settled before=5", "collecting 1 round=1 reported", "member: forget before 5; to 3: settled before=5"},
	{"entered", "from 0 settled before=5", "running 3 round=1", "member: forget before 5; to 3: settled before=5"},
	{"failing", "from 0 settled before=5", "running 1 round=0 failing", "member: forget before 5; to 3: settled before=5"},
	{"left", "from 0 settled before=5", "left 1 round=0", ""},
	{"ended", "from 0 settled before=5", "ended 1 round=0", ""},
}

func TestTransitions(t *testing.T) {
	seen := map[string]int{}
	for _, row := range transitions {
		seen[row.from]++
		t.Run(row.from+"/"+row.input, func(t *testing.T) {
			to, out := transition(row.from, row.input)
			if to != row.to || out != row.out {
				t.Errorf("got  {%q, %q}\nwant {%q, %q}", to, out, row.to, row.out)
			}
		})
	}
	for state := range coreStates {
		if seen[state] != seen["running"] {
			t.Errorf("%d inputs in state %q, %d in state running", seen[state], state, seen["running"])
		}
	}
}

func transition(from, input string) (to, out string) {
	t := newTrial()
	t.do(coreStates[from]...)
	out = strings.ReplaceAll(strings.TrimSpace(t.do(input)), "\n", "; ")
	return t.c.String(), out
}
