package switchreduce

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
)

// The states in which the slot of number 4 can be when a packet about number 4
// of epoch 2 comes to a switch with children a (rank 0) and b (rank 3), a
// parent, W = 2 and k = 1, and how it gets there.
var slotStates = map[string][]string{
	"vacant":     nil,
	"before":     {"install epoch=1 window=2 children=0,3 parent=yes cookie=6", "a contribution 4 5 50"},
	"older":      {"a contribution 0 5 50"},
	"open a":     {"a contribution 4 1 10"},
	"open b":     {"b contribution 4 3 30"},
	"complete":   {"a contribution 4 1 10", "b contribution 4 3 30"},
	"unanswered": {"a contribution 4 1 10", "b contribution 4 3 30", "a probe 4"},
	"lost":       {"a contribution 4 1 10", "b contribution 4 3 30", "p lost 4"},
	"finished":   {"a contribution 4 1 10", "b contribution 4 3 30", "p result 4 100 200"},
	"failed":     {"a contribution 4 1 10", "p error 4 mismatch"},
	"newer":      {"a contribution 8 7 70"},
}

// transitions reports, for a state and an input, the state after it and what is
// sent, or why the input is dropped.
var transitions = [][4]string{
	{"vacant", "a contribution 4 1 10", "open 4 has=a", ""},
	{"before", "a contribution 4 1 10", "open 4 has=a", ""},
	{"older", "a contribution 4 1 10", "open 4 has=a", ""},
	{"open a", "a contribution 4 1 10", "open 4 has=a", "drop duplicate"},
	{"open b", "a contribution 4 1 10", "complete 4", "p contribution 4 allreduce 4 40 sink"},
	{"complete", "a contribution 4 1 10", "complete 4", "drop duplicate"},
	{"unanswered", "a contribution 4 1 10", "complete 4 unanswered=1", "drop duplicate"},
	{"lost", "a contribution 4 1 10", "complete 4 lost", "drop duplicate"},
	{"finished", "a contribution 4 1 10", "finished 4", "drop duplicate"},
	{"failed", "a contribution 4 1 10", "failed 4", "drop duplicate"},
	{"newer", "a contribution 4 1 10", "open 8 has=a", "drop late"},

	{"vacant", "b contribution 4 3 30", "open 4 has=b", ""},
	{"before", "b contribution 4 3 30", "open 4 has=b", ""},
	{"older", "b contribution 4 3 30", "open 4 has=b", ""},
	{"open a", "b contribution 4 3 30", "complete 4", "p contribution 4 allreduce 4 40 sink"},
	{"open b", "b contribution 4 3 30", "open 4 has=b", "drop duplicate"},
	{"complete", "b contribution 4 3 30", "complete 4", "drop duplicate"},
	{"unanswered", "b contribution 4 3 30", "complete 4 unanswered=1", "drop duplicate"},
	{"lost", "b contribution 4 3 30", "complete 4 lost", "drop duplicate"},
	{"finished", "b contribution 4 3 30", "finished 4", "drop duplicate"},
	{"failed", "b contribution 4 3 30", "failed 4", "drop duplicate"},
	{"newer", "b contribution 4 3 30", "open 8 has=a", "drop late"},

	{"vacant", "b contribution 4 op=1 3 30", "open 4 has=b", ""},
	{"before", "b contribution 4 op=1 3 30", "open 4 has=b", ""},
	{"older", "b contribution 4 op=1 3 30", "open 4 has=b", ""},
	{"open a", "b contribution 4 op=1 3 30", "failed 4", "p error 4 mismatch ranks=0,3; a error 4 mismatch ranks=0,3; b error 4 mismatch ranks=0,3"},
	{"open b", "b contribution 4 op=1 3 30", "open 4 has=b", "drop duplicate"},
	{"complete", "b contribution 4 op=1 3 30", "complete 4", "drop duplicate"},
	{"unanswered", "b contribution 4 op=1 3 30", "complete 4 unanswered=1", "drop duplicate"},
	{"lost", "b contribution 4 op=1 3 30", "complete 4 lost", "drop duplicate"},
	{"finished", "b contribution 4 op=1 3 30", "finished 4", "drop duplicate"},
	{"failed", "b contribution 4 op=1 3 30", "failed 4", "drop duplicate"},
	{"newer", "b contribution 4 op=1 3 30", "open 8 has=a", "drop late"},

	{"vacant", "a probe 4", "vacant", "a want 4"},
	{"before", "a probe 4", "open 4 epoch=1 has=a", "a want 4"},
	{"older", "a probe 4", "open 0 has=a", "a want 4"},
	{"open a", "a probe 4", "open 4 has=a", "a heard 4"},
	{"open b", "a probe 4", "open 4 has=b", "a want 4"},
	{"complete", "a probe 4", "complete 4 unanswered=1", "a heard 4; p probe 4"},
	{"unanswered", "a probe 4", "complete 4 unanswered=1", "a lost 4; p probe 4"},
	{"lost", "a probe 4", "complete 4 unanswered=1 lost", "a lost 4; p probe 4"},
	{"finished", "a probe 4", "finished 4", "a result 4 allreduce 100 200 sink"},
	{"failed", "a probe 4", "failed 4", "a error 4 mismatch ranks=1,2"},
	{"newer", "a probe 4", "open 8 has=a", "drop late"},

	{"vacant", "b probe 4", "vacant", "b want 4"},
	{"before", "b probe 4", "open 4 epoch=1 has=a", "b want 4"},
	{"older", "b probe 4", "open 0 has=a", "b want 4"},
	{"open a", "b probe 4", "open 4 has=a", "b want 4"},
	{"open b", "b probe 4", "open 4 has=b", "b heard 4"},
	{"complete", "b probe 4", "complete 4", "b heard 4"},
	{"unanswered", "b probe 4", "complete 4 unanswered=1", "b lost 4"},
	{"lost", "b probe 4", "complete 4 lost", "b lost 4"},
	{"finished", "b probe 4", "finished 4", "b result 4 allreduce 100 200 sink"},
	{"failed", "b probe 4", "failed 4", "b error 4 mismatch ranks=1,2"},
	{"newer", "b probe 4", "open 8 has=a", "drop late"},

	{"vacant", "b probe 4 idle", "vacant", ""},
	{"before", "b probe 4 idle", "open 4 epoch=1 has=a", ""},
	{"older", "b probe 4 idle", "open 0 has=a", ""},
	{"open a", "b probe 4 idle", "open 4 has=a", ""},
	{"open b", "b probe 4 idle", "open 4 has=b", ""},
	{"complete", "b probe 4 idle", "complete 4", ""},
	{"unanswered", "b probe 4 idle", "complete 4 unanswered=1", ""},
	{"lost", "b probe 4 idle", "complete 4 lost", ""},
	{"finished", "b probe 4 idle", "finished 4", ""},
	{"failed", "b probe 4 idle", "failed 4", ""},
	{"newer", "b probe 4 idle", "open 8 has=a", ""},

	{"vacant", "p result 4 100 200", "vacant", "drop unasked"},
	{"before", "p result 4 100 200", "open 4 epoch=1 has=a", "drop unasked"},
	{"older", "p result 4 100 200", "open 0 has=a", "drop unasked"},
	{"open a", "p result 4 100 200", "open 4 has=a", "drop unasked"},
	{"open b", "p result 4 100 200", "open 4 has=b", "drop unasked"},
	{"complete", "p result 4 100 200", "finished 4", "a result 4 allreduce 100 200 sink; b result 4 allreduce 100 200 sink"},
	{"unanswered", "p result 4 100 200", "finished 4", "a result 4 allreduce 100 200 sink; b result 4 allreduce 100 200 sink"},
	{"lost", "p result 4 100 200", "finished 4", "a result 4 allreduce 100 200 sink; b result 4 allreduce 100 200 sink"},
	{"finished", "p result 4 100 200", "finished 4", "drop duplicate"},
	{"failed", "p result 4 100 200", "failed 4", "drop duplicate"},
	{"newer", "p result 4 100 200", "open 8 has=a", "drop late"},

	{"vacant", "p result 4 op=1 100 200", "vacant", "drop unasked"},
	{"before", "p result 4 op=1 100 200", "open 4 epoch=1 has=a", "drop unasked"},
	{"older", "p result 4 op=1 100 200", "open 0 has=a", "drop unasked"},
	{"open a", "p result 4 op=1 100 200", "open 4 has=a", "drop unasked"},
	{"open b", "p result 4 op=1 100 200", "open 4 has=b", "drop unasked"},
	{"complete", "p result 4 op=1 100 200", "complete 4", "drop unfit"},
	{"unanswered", "p result 4 op=1 100 200", "complete 4 unanswered=1", "drop unfit"},
	{"lost", "p result 4 op=1 100 200", "complete 4 lost", "drop unfit"},
	{"finished", "p result 4 op=1 100 200", "finished 4", "drop duplicate"},
	{"failed", "p result 4 op=1 100 200", "failed 4", "drop duplicate"},
	{"newer", "p result 4 op=1 100 200", "open 8 has=a", "drop late"},

	{"vacant", "p heard 4", "vacant", "drop unasked"},
	{"before", "p heard 4", "open 4 epoch=1 has=a", "drop unasked"},
	{"older", "p heard 4", "open 0 has=a", "drop unasked"},
	{"open a", "p heard 4", "open 4 has=a", "drop unasked"},
	{"open b", "p heard 4", "open 4 has=b", "drop unasked"},
	{"complete", "p heard 4", "complete 4", ""},
	{"unanswered", "p heard 4", "complete 4", ""},
	{"lost", "p heard 4", "complete 4", ""},
	{"finished", "p heard 4", "finished 4", "drop unasked"},
	{"failed", "p heard 4", "failed 4", "drop unasked"},
	{"newer", "p heard 4", "open 8 has=a", "drop late"},

	{"vacant", "p want 4", "vacant", "drop unasked"},
	{"before", "p want 4", "open 4 epoch=1 has=a", "drop unasked"},
	{"older", "p want 4", "open 0 has=a", "drop unasked"},
	{"open a", "p want 4", "open 4 has=a", "drop unasked"},
	{"open b", "p want 4", "open 4 has=b", "drop unasked"},
	{"complete", "p want 4", "complete 4", "p contribution 4 allreduce 4 40 sink"},
	{"unanswered", "p want 4", "complete 4", "p contribution 4 allreduce 4 40 sink"},
	{"lost", "p want 4", "complete 4", "p contribution 4 allreduce 4 40 sink"},
	{"finished", "p want 4", "finished 4", "drop unasked"},
	{"failed", "p want 4", "failed 4", "drop unasked"},
	{"newer", "p want 4", "open 8 has=a", "drop late"},

	{"vacant", "p lost 4", "vacant", "drop unasked"},
	{"before", "p lost 4", "open 4 epoch=1 has=a", "drop unasked"},
	{"older", "p lost 4", "open 0 has=a", "drop unasked"},
	{"open a", "p lost 4", "open 4 has=a", "drop unasked"},
	{"open b", "p lost 4", "open 4 has=b", "drop unasked"},
	{"complete", "p lost 4", "complete 4 lost", ""},
	{"unanswered", "p lost 4", "complete 4 lost", ""},
	{"lost", "p lost 4", "complete 4 lost", ""},
	{"finished", "p lost 4", "finished 4", "drop unasked"},
	{"failed", "p lost 4", "failed 4", "drop unasked"},
	{"newer", "p lost 4", "open 8 has=a", "drop late"},

	{"vacant", "a error 4 mismatch", "failed 4", "p error 4 mismatch ranks=1,2; b error 4 mismatch ranks=1,2"},
	{"before", "a error 4 mismatch", "failed 4", "p error 4 mismatch ranks=1,2; b error 4 mismatch ranks=1,2"},
	{"older", "a error 4 mismatch", "failed 4", "p error 4 mismatch ranks=1,2; b error 4 mismatch ranks=1,2"},
	{"open a", "a error 4 mismatch", "failed 4", "p error 4 mismatch ranks=1,2; b error 4 mismatch ranks=1,2"},
	{"open b", "a error 4 mismatch", "failed 4", "p error 4 mismatch ranks=1,2; b error 4 mismatch ranks=1,2"},
	{"complete", "a error 4 mismatch", "failed 4", "p error 4 mismatch ranks=1,2; b error 4 mismatch ranks=1,2"},
	{"unanswered", "a error 4 mismatch", "failed 4", "p error 4 mismatch ranks=1,2; b error 4 mismatch ranks=1,2"},
	{"lost", "a error 4 mismatch", "failed 4", "p error 4 mismatch ranks=1,2; b error 4 mismatch ranks=1,2"},
	{"finished", "a error 4 mismatch", "finished 4", "drop duplicate"},
	{"failed", "a error 4 mismatch", "failed 4", "drop duplicate"},
	{"newer", "a error 4 mismatch", "open 8 has=a", "drop late"},

	{"vacant", "p error 4 mismatch", "failed 4", "a error 4 mismatch ranks=1,2; b error 4 mismatch ranks=1,2"},
	{"before", "p error 4 mismatch", "failed 4", "a error 4 mismatch ranks=1,2; b error 4 mismatch ranks=1,2"},
	{"older", "p error 4 mismatch", "failed 4", "a error 4 mismatch ranks=1,2; b error 4 mismatch ranks=1,2"},
	{"open a", "p error 4 mismatch", "failed 4", "a error 4 mismatch ranks=1,2; b error 4 mismatch ranks=1,2"},
	{"open b", "p error 4 mismatch", "failed 4", "a error 4 mismatch ranks=1,2; b error 4 mismatch ranks=1,2"},
	{"complete", "p error 4 mismatch", "failed 4", "a error 4 mismatch ranks=1,2; b error 4 mismatch ranks=1,2"},
	{"unanswered", "p error 4 mismatch", "failed 4", "a error 4 mismatch ranks=1,2; b error 4 mismatch ranks=1,2"},
	{"lost", "p error 4 mismatch", "failed 4", "a error 4 mismatch ranks=1,2; b error 4 mismatch ranks=1,2"},
	{"finished", "p error 4 mismatch", "finished 4", "drop duplicate"},
	{"failed", "p error 4 mismatch", "failed 4", "drop duplicate"},
	{"newer", "p error 4 mismatch", "open 8 has=a", "drop late"},
}

// tail is what reports nothing new about a packet in this test.
var tail = regexp.MustCompile(` child=\d epoch=2`)

func TestTransitions(t *testing.T) {
	transcript.Transitions(t, transitions, slotStates, transition)
}

func transition(from, input string) (to, sends string) {
	trial := newTrial()
	script := slotStates[from]
	if from == "before" {
		trial.do(script...)
	}
	trial.do("install epoch=2 window=2 children=0,3 parent=yes probes=1")
	if from != "before" {
		trial.do(script...)
	}
	sends = tail.ReplaceAllString(trial.do(input), "")
	sends = strings.ReplaceAll(strings.TrimSpace(sends), "\n", "; ")
	slot := &slot{}
	if page := trial.core.pages[0]; page != nil {
		slot = &page[0]
	}
	to = strings.Replace(slot.String(), " epoch=2", "", 1)
	return to, sends
}
