package session

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
)

// The states in which number 1 can be at rank 1, and how it gets there. W is 2,
// k is 1, and the operation is an allreduce of three chunks.
var chunkStates = map[string][]string{
	"vacant":    {"enter epoch=2 window=1 probes=1", "start allreduce 0 0 0 0 1 1 1 1 2 2 2 2"},
	"behind":    {"enter epoch=2 window=2 probes=1", "start allreduce 0 0 0 0 1 1 1 1 2 2 2 2"},
	"oldest":    {"enter epoch=2 window=2 probes=1", "start allreduce 0 0 0 0 1 1 1 1 2 2 2 2", "result 0 9 9 9 9"},
	"lowest":    {"enter epoch=2 window=2 probes=1 index=0", "start allreduce 0 0 0 0 1 1 1 1 2 2 2 2", "result 0 9 9 9 9", "wait 20ms"},
	"probed":    {"enter epoch=2 window=2 probes=1", "start allreduce 0 0 0 0 1 1 1 1 2 2 2 2", "result 0 9 9 9 9", "wait 20ms"},
	"early":     {"enter epoch=2 window=2 probes=1", "start allreduce 0 0 0 0 1 1 1 1 2 2 2 2", "result 1 8 8 8 8"},
	"done":      {"enter epoch=2 window=2 probes=1", "start allreduce 0 0 0 0 1 1 1 1 2 2 2 2", "result 0 9 9 9 9", "result 1 8 8 8 8"},
	"awaited":   {"enter epoch=1 window=2", "start allreduce 0 0 0 0 1 1 1 1 2 2 2 2", "result 0 9 9 9 9", "freeze", "enter epoch=2 window=2 probes=1 held=1"},
	"frozen":    {"enter epoch=2 window=2 probes=1", "start allreduce 0 0 0 0 1 1 1 1 2 2 2 2", "result 0 9 9 9 9", "freeze"},
	"not sink":  {"enter epoch=2 window=2 probes=1", "start reduce:0 0 0 0 0 1 1 1 1 2 2 2 2", "result 0"},
	"not sink*": {"enter epoch=2 window=2 probes=1", "start reduce:0 0 0 0 0 1 1 1 1 2 2 2 2", "result 0", "result 1"},
}

// transitions reports, for a state of number 1 and an input, the state of number
// 1 and the base after it, and what is put out.
var transitions = [][4]string{
	{"vacant", "result 1 8 8 8 8", "vacant, base 0", "discarded"},
	{"behind", "result 1 8 8 8 8", "done, base 0", ""},
	{"oldest", "result 1 8 8 8 8", "done, base 2", ""},
	{"probed", "result 1 8 8 8 8", "done, base 2", ""},
	{"lowest", "result 1 8 8 8 8", "done, base 2", ""},
	{"early", "result 1 8 8 8 8", "done, base 0", "discarded"},
	{"done", "result 1 8 8 8 8", "done, base 2", "discarded"},
	{"awaited", "result 1 8 8 8 8", "awaited, base 1", "discarded"},
	{"frozen", "result 1 8 8 8 8", "flying, base 1, frozen", "discarded"},
	{"not sink", "result 1 8 8 8 8", "flying, base 1", "discarded"},
	{"not sink*", "result 1 8 8 8 8", "done, base 2", "discarded"},

	{"vacant", "result 1", "vacant, base 0", "discarded"},
	{"behind", "result 1", "flying, base 0", "discarded"},
	{"oldest", "result 1", "flying, base 1", "discarded"},
	{"probed", "result 1", "flying, base 1", "discarded"},
	{"lowest", "result 1", "flying, base 1", "discarded"},
	{"early", "result 1", "done, base 0", "discarded"},
	{"done", "result 1", "done, base 2", "discarded"},
	{"awaited", "result 1", "awaited, base 1", "discarded"},
	{"frozen", "result 1", "flying, base 1, frozen", "discarded"},
	{"not sink", "result 1", "done, base 2", ""},
	{"not sink*", "result 1", "done, base 2", "discarded"},

	{"vacant", "heard 1", "vacant, base 0", "discarded"},
	{"behind", "heard 1", "flying, base 0", ""},
	{"oldest", "heard 1", "flying, base 1", ""},
	{"probed", "heard 1", "flying, base 1", ""},
	{"lowest", "heard 1", "flying, base 1", ""},
	{"early", "heard 1", "done, base 0", "discarded"},
	{"done", "heard 1", "done, base 2", "discarded"},
	{"awaited", "heard 1", "awaited, base 1", "discarded"},
	{"frozen", "heard 1", "flying, base 1, frozen", "discarded"},
	{"not sink", "heard 1", "flying, base 1", ""},
	{"not sink*", "heard 1", "done, base 2", "discarded"},

	{"vacant", "want 1", "vacant, base 0", "discarded"},
	{"behind", "want 1", "flying, base 0", "contribution 1 allreduce 1 1 1 1 sink epoch=2"},
	{"oldest", "want 1", "flying, base 1", "contribution 1 allreduce 1 1 1 1 sink epoch=2"},
	{"probed", "want 1", "flying, base 1", "contribution 1 allreduce 1 1 1 1 sink epoch=2"},
	{"lowest", "want 1", "flying, base 1", "contribution 1 allreduce 1 1 1 1 sink epoch=2"},
	{"early", "want 1", "done, base 0", "discarded"},
	{"done", "want 1", "done, base 2", "discarded"},
	{"awaited", "want 1", "awaited, base 1", "discarded"},
	{"frozen", "want 1", "flying, base 1, frozen", "discarded"},
	{"not sink", "want 1", "flying, base 1", "contribution 1 reduce 1 1 1 1 epoch=2"},
	{"not sink*", "want 1", "done, base 2", "discarded"},

	{"vacant", "lost 1", "vacant, base 0", "discarded"},
	{"behind", "lost 1", "flying, base 0", ""},
	{"oldest", "lost 1", "flying, base 1", ""},
	{"probed", "lost 1", "flying, base 1", ""},
	{"lowest", "lost 1", "flying, base 1", ""},
	{"early", "lost 1", "done, base 0", "discarded"},
	{"done", "lost 1", "done, base 2", "discarded"},
	{"awaited", "lost 1", "awaited, base 1", "discarded"},
	{"frozen", "lost 1", "flying, base 1, frozen", "discarded"},
	{"not sink", "lost 1", "flying, base 1", ""},
	{"not sink*", "lost 1", "done, base 2", "discarded"},

	{"vacant", "error 1", "vacant, base 0", "disagreement chunk=1 ranks=1,2"},
	{"behind", "error 1", "flying, base 0", "disagreement chunk=1 ranks=1,2"},
	{"oldest", "error 1", "flying, base 1", "disagreement chunk=1 ranks=1,2"},
	{"probed", "error 1", "flying, base 1", "disagreement chunk=1 ranks=1,2"},
	{"lowest", "error 1", "flying, base 1", "disagreement chunk=1 ranks=1,2"},
	{"early", "error 1", "done, base 0", "disagreement chunk=1 ranks=1,2"},
	{"done", "error 1", "done, base 2", "discarded"},
	{"awaited", "error 1", "awaited, base 1", "disagreement chunk=1 ranks=1,2"},
	{"frozen", "error 1", "flying, base 1, frozen", "discarded"},
	{"not sink", "error 1", "flying, base 1", "disagreement chunk=1 ranks=1,2"},
	{"not sink*", "error 1", "done, base 2", "discarded"},

	{"vacant", "fill 1 7 7 7 7", "vacant, base 0", "not awaited"},
	{"behind", "fill 1 7 7 7 7", "flying, base 0", "not awaited"},
	{"oldest", "fill 1 7 7 7 7", "flying, base 1", "not awaited"},
	{"probed", "fill 1 7 7 7 7", "flying, base 1", "not awaited"},
	{"lowest", "fill 1 7 7 7 7", "flying, base 1", "not awaited"},
	{"early", "fill 1 7 7 7 7", "done, base 0", "not awaited"},
	{"done", "fill 1 7 7 7 7", "done, base 2", "not awaited"},
	{"awaited", "fill 1 7 7 7 7", "done, base 2", ""},
	{"frozen", "fill 1 7 7 7 7", "flying, base 1, frozen", "not awaited"},
	{"not sink", "fill 1 7 7 7 7", "flying, base 1", "not awaited"},
	{"not sink*", "fill 1 7 7 7 7", "done, base 2", "not awaited"},

	{"vacant", "wait 20ms", "vacant, base 0", "probe 0 epoch=2"},
	{"behind", "wait 20ms", "flying, base 0", "probe 0 epoch=2"},
	{"oldest", "wait 20ms", "flying, base 1", "probe 1 epoch=2"},
	{"probed", "wait 20ms", "flying, base 1", "probe 1 epoch=2"},
	{"lowest", "wait 20ms", "flying, base 1", "probe 1 epoch=2"},
	{"early", "wait 20ms", "done, base 0", "probe 0 epoch=2"},
	{"done", "wait 20ms", "done, base 2", "probe 2 epoch=2"},
	{"awaited", "wait 20ms", "awaited, base 1", ""},
	{"frozen", "wait 20ms", "flying, base 1, frozen", ""},
	{"not sink", "wait 20ms", "flying, base 1", "probe 1 epoch=2"},
	{"not sink*", "wait 20ms", "done, base 2", "probe 2 epoch=2"},

	{"vacant", "wait 800ms", "vacant, base 0", "probe 0 epoch=2"},
	{"behind", "wait 800ms", "flying, base 0", "probe 0 epoch=2"},
	{"oldest", "wait 800ms", "flying, base 1", "probe 1 epoch=2"},
	{"probed", "wait 800ms", "flying, base 1, frozen", "loss epoch=2 chunk=1 said=false probes=1 over=800ms quiet=0s"},
	{"lowest", "wait 800ms", "flying, base 1, frozen", "loss epoch=2 chunk=1 said=false probes=1 over=800ms quiet=0s"},
	{"early", "wait 800ms", "done, base 0", "probe 0 epoch=2"},
	{"done", "wait 800ms", "done, base 2", "probe 2 epoch=2"},
	{"awaited", "wait 800ms", "awaited, base 1", ""},
	{"frozen", "wait 800ms", "flying, base 1, frozen", ""},
	{"not sink", "wait 800ms", "flying, base 1", "probe 1 epoch=2"},
	{"not sink*", "wait 800ms", "done, base 2", "probe 2 epoch=2"},

	{"vacant", "lost 1; wait 800ms", "vacant, base 0", "discarded; probe 0 epoch=2"},
	{"behind", "lost 1; wait 800ms", "flying, base 0", "probe 0 epoch=2"},
	{"oldest", "lost 1; wait 800ms", "flying, base 1", "probe 1 epoch=2"},
	{"probed", "lost 1; wait 800ms", "flying, base 1", "probe 1 epoch=2"},
	{"lowest", "lost 1; wait 800ms", "flying, base 1, frozen", "loss epoch=2 chunk=1 said=true probes=1 over=800ms quiet=0s"},
	{"early", "lost 1; wait 800ms", "done, base 0", "discarded; probe 0 epoch=2"},
	{"done", "lost 1; wait 800ms", "done, base 2", "discarded; probe 2 epoch=2"},
	{"awaited", "lost 1; wait 800ms", "awaited, base 1", "discarded"},
	{"frozen", "lost 1; wait 800ms", "flying, base 1, frozen", "discarded"},
	{"not sink", "lost 1; wait 800ms", "flying, base 1", "probe 1 epoch=2"},
	{"not sink*", "lost 1; wait 800ms", "done, base 2", "discarded; probe 2 epoch=2"},

	{"vacant", "heard 1; wait 800ms", "vacant, base 0", "discarded; probe 0 epoch=2"},
	{"behind", "heard 1; wait 800ms", "flying, base 0", "probe 0 epoch=2"},
	{"oldest", "heard 1; wait 800ms", "flying, base 1", "probe 1 epoch=2"},
	{"probed", "heard 1; wait 800ms", "flying, base 1", "probe 1 epoch=2"},
	{"lowest", "heard 1; wait 800ms", "flying, base 1", "probe 1 epoch=2"},
	{"early", "heard 1; wait 800ms", "done, base 0", "discarded; probe 0 epoch=2"},
	{"done", "heard 1; wait 800ms", "done, base 2", "discarded; probe 2 epoch=2"},
	{"awaited", "heard 1; wait 800ms", "awaited, base 1", "discarded"},
	{"frozen", "heard 1; wait 800ms", "flying, base 1, frozen", "discarded"},
	{"not sink", "heard 1; wait 800ms", "flying, base 1", "probe 1 epoch=2"},
	{"not sink*", "heard 1; wait 800ms", "done, base 2", "discarded; probe 2 epoch=2"},

	{"vacant", "freeze; enter epoch=4 window=2 base=0", "flying, base 0", "report base=0 held=[] lack=[0]; contribution 0 allreduce 0 0 0 0 sink epoch=4; contribution 1 allreduce 1 1 1 1 sink epoch=4"},
	{"behind", "freeze; enter epoch=4 window=2 base=0", "flying, base 0", "report base=0 held=[] lack=[0 1]; contribution 0 allreduce 0 0 0 0 sink epoch=4; contribution 1 allreduce 1 1 1 1 sink epoch=4"},
	{"oldest", "freeze; enter epoch=4 window=2 base=0", "flying, base 1, frozen", "report base=1 held=[0] lack=[1 2]; session: impossible decision: number 0 is to be reduced again, and its result is here"},
	{"probed", "freeze; enter epoch=4 window=2 base=0", "flying, base 1, frozen", "report base=1 held=[0] lack=[1 2]; session: impossible decision: number 0 is to be reduced again, and its result is here"},
	{"lowest", "freeze; enter epoch=4 window=2 base=0", "flying, base 1, frozen", "report base=1 held=[0] lack=[1 2]; session: impossible decision: number 0 is to be reduced again, and its result is here"},
	{"early", "freeze; enter epoch=4 window=2 base=0", "done, base 0, frozen", "report base=0 held=[1] lack=[0]; session: impossible decision: number 1 is to be reduced again, and its result is here"},
	{"done", "freeze; enter epoch=4 window=2 base=0", "done, base 2, frozen", "report base=2 held=[0 1] lack=[2]; session: impossible decision: number 0 is to be reduced again, and its result is here"},
	{"awaited", "freeze; enter epoch=4 window=2 base=0", "awaited, base 1, frozen", "report base=1 held=[0] lack=[1 2]; session: impossible decision: number 0 is to be reduced again, and its result is here"},
	{"frozen", "freeze; enter epoch=4 window=2 base=0", "flying, base 1, frozen", "report base=1 held=[0] lack=[1 2]; session: impossible decision: number 0 is to be reduced again, and its result is here"},
	{"not sink", "freeze; enter epoch=4 window=2 base=0", "flying, base 0", "report base=1 held=[] lack=[]; contribution 0 reduce 0 0 0 0 epoch=4; contribution 1 reduce 1 1 1 1 epoch=4"},
	{"not sink*", "freeze; enter epoch=4 window=2 base=0", "flying, base 0", "report base=2 held=[] lack=[]; contribution 0 reduce 0 0 0 0 epoch=4; contribution 1 reduce 1 1 1 1 epoch=4"},

	{"vacant", "freeze; enter epoch=4 window=2 base=0 held=0", "flying, base 0", "report base=0 held=[] lack=[0]; contribution 1 allreduce 1 1 1 1 sink epoch=4"},
	{"behind", "freeze; enter epoch=4 window=2 base=0 held=0", "flying, base 0", "report base=0 held=[] lack=[0 1]; contribution 1 allreduce 1 1 1 1 sink epoch=4"},
	{"oldest", "freeze; enter epoch=4 window=2 base=0 held=0", "flying, base 1", "report base=1 held=[0] lack=[1 2]; contribution 1 allreduce 1 1 1 1 sink epoch=4; contribution 2 allreduce 2 2 2 2 sink epoch=4"},
	{"probed", "freeze; enter epoch=4 window=2 base=0 held=0", "flying, base 1", "report base=1 held=[0] lack=[1 2]; contribution 1 allreduce 1 1 1 1 sink epoch=4; contribution 2 allreduce 2 2 2 2 sink epoch=4"},
	{"lowest", "freeze; enter epoch=4 window=2 base=0 held=0", "flying, base 1", "report base=1 held=[0] lack=[1 2]; contribution 1 allreduce 1 1 1 1 sink epoch=4; contribution 2 allreduce 2 2 2 2 sink epoch=4"},
	{"early", "freeze; enter epoch=4 window=2 base=0 held=0", "done, base 0, frozen", "report base=0 held=[1] lack=[0]; session: impossible decision: number 1 is to be reduced again, and its result is here"},
	{"done", "freeze; enter epoch=4 window=2 base=0 held=0", "done, base 2, frozen", "report base=2 held=[0 1] lack=[2]; session: impossible decision: number 1 is to be reduced again, and its result is here"},
	{"awaited", "freeze; enter epoch=4 window=2 base=0 held=0", "flying, base 1", "report base=1 held=[0] lack=[1 2]; contribution 1 allreduce 1 1 1 1 sink epoch=4; contribution 2 allreduce 2 2 2 2 sink epoch=4"},
	{"frozen", "freeze; enter epoch=4 window=2 base=0 held=0", "flying, base 1", "report base=1 held=[0] lack=[1 2]; contribution 1 allreduce 1 1 1 1 sink epoch=4; contribution 2 allreduce 2 2 2 2 sink epoch=4"},
	{"not sink", "freeze; enter epoch=4 window=2 base=0 held=0", "flying, base 1", "report base=1 held=[] lack=[]; contribution 1 reduce 1 1 1 1 epoch=4; contribution 2 reduce 2 2 2 2 epoch=4"},
	{"not sink*", "freeze; enter epoch=4 window=2 base=0 held=0", "flying, base 1", "report base=2 held=[] lack=[]; contribution 1 reduce 1 1 1 1 epoch=4; contribution 2 reduce 2 2 2 2 epoch=4"},

	{"vacant", "freeze; enter epoch=4 window=2 base=0 held=0,1", "vacant, base 0, frozen", "report base=0 held=[] lack=[0]; session: impossible decision: number 1 counts as held, and was never contributed to here"},
	{"behind", "freeze; enter epoch=4 window=2 base=0 held=0,1", "awaited, base 0", "report base=0 held=[] lack=[0 1]"},
	{"oldest", "freeze; enter epoch=4 window=2 base=0 held=0,1", "awaited, base 1", "report base=1 held=[0] lack=[1 2]; contribution 2 allreduce 2 2 2 2 sink epoch=4"},
	{"probed", "freeze; enter epoch=4 window=2 base=0 held=0,1", "awaited, base 1", "report base=1 held=[0] lack=[1 2]; contribution 2 allreduce 2 2 2 2 sink epoch=4"},
	{"lowest", "freeze; enter epoch=4 window=2 base=0 held=0,1", "awaited, base 1", "report base=1 held=[0] lack=[1 2]; contribution 2 allreduce 2 2 2 2 sink epoch=4"},
	{"early", "freeze; enter epoch=4 window=2 base=0 held=0,1", "done, base 0", "report base=0 held=[1] lack=[0]"},
	{"done", "freeze; enter epoch=4 window=2 base=0 held=0,1", "done, base 2", "report base=2 held=[0 1] lack=[2]; contribution 2 allreduce 2 2 2 2 sink epoch=4"},
	{"awaited", "freeze; enter epoch=4 window=2 base=0 held=0,1", "awaited, base 1", "report base=1 held=[0] lack=[1 2]; contribution 2 allreduce 2 2 2 2 sink epoch=4"},
	{"frozen", "freeze; enter epoch=4 window=2 base=0 held=0,1", "awaited, base 1", "report base=1 held=[0] lack=[1 2]; contribution 2 allreduce 2 2 2 2 sink epoch=4"},
	{"not sink", "freeze; enter epoch=4 window=2 base=0 held=0,1", "done, base 2", "report base=1 held=[] lack=[]; contribution 2 reduce 2 2 2 2 epoch=4"},
	{"not sink*", "freeze; enter epoch=4 window=2 base=0 held=0,1", "done, base 2", "report base=2 held=[] lack=[]; contribution 2 reduce 2 2 2 2 epoch=4"},
}

func TestTransitions(t *testing.T) {
	transcript.Transitions(t, transitions, chunkStates, transition)
}

func transition(from, input string) (to, out string) {
	t := newTrial()
	t.do(chunkStates[from]...)
	out = strings.ReplaceAll(strings.TrimSpace(t.do(strings.Split(input, "; ")...)), "\n", "; ")
	to = fmt.Sprintf("%s, base %d", t.of(1), t.s.base)
	if t.s.frozen {
		to += ", frozen"
	}
	return to, out
}
