package peering

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
)

// situations are those in which a can be as to the channel of class 0 to b, whose name is
// after its own, and how it gets there.
var situations = []struct{ name, by string }{
	{"unknown", ""},
	{"dials", "want b 0"},
	{"failed", "want b 0; end d1"},
	{"dials, waits", "want b 0; arrive 1 10.0.0.1; greet 1 call=4"},
	{"up by a", "want b 0; answer d1 accept"},
	{"up by b", "arrive 1 10.0.0.1; greet 1 call=4"},
	{"drains", "want b 0; answer d1 accept; finished d1"},
	{"replaced", "arrive 1 10.0.0.1; greet 1 call=4; arrive 2 10.0.0.1; greet 2 call=5"},
	{"held, dials", "hold b 0"},
	{"held, up", "hold b 0; answer d1 accept"},
	{"learned", "learn b inc=5"},
	{"claimed", "want b 0; answer d1 accept; arrive 2 10.0.0.2; greet 2 call=1 inc=6; sample d1 reads=1"},
	{"claims by a", "want b 0; answer d1 accept; want b 1; answer d2 accept inc=6; sample d1 reads=1"},
	{"closing", "want b 0; answer d1 accept; closing"},
}

// events are what can happen then.
var events = []string{
	"want b 0", "hold b 0", "release b 0", "call b 2", "learn b inc=5", "learn b inc=6", "learn b inc=4",
	"answer d1 accept", "answer d1 accept inc=4", "answer d1 accept inc=6", "answer d1 refuse inc=0", "answer d1 outdated", "answer d1 outdated inc=10", "answer d1 taken",
	"answer d1 duplicate", "answer d1 former inc=4", "answer d1 busy",
	"greet 9 call=3", "greet 9 call=5", "greet 9 call=5 accepted=1", "greet 9 call=5 inc=4", "greet 9 call=5 inc=6",
	"greet 9 call=5 known=10", "greet 9 call=5 known=11", "greet 9 class=2", "greet 9 class=3", "greet 9 from=a", "greet 9 to=x", "malformed 9",
	"finished d1", "finished 1", "end d1", "end 1",
	"sample d1 heard=1s", "sample d1 heard=2s", "sample d1 heard=5s", "sample d1 heard=5s deaf", "sample d1 used=10m", "sample 1 used=10m",
	"sample d1 reads=1", "sample d1 reads=2", "end 2", "end d2", "closing",
	"pass 100ms", "pass 5s",
}

// table reports, for every situation and event, how the channel is then, and what the core
// asks for.
func table() string {
	var b strings.Builder
	for _, s := range situations {
		for _, event := range events {
			t := newTrial(nil)
			t.do(s.by)
			if strings.Contains(event, " 9") {
				t.do("arrive 9 10.0.0.9")
			}
			out := strings.ReplaceAll(strings.TrimSpace(t.do(event)), "\n", "; ")
			row := fmt.Sprintf("%-14s%-28s%-32s%s", s.name, event, t.state(), out)
			b.WriteString(strings.TrimRight(row, " ") + "\n")
		}
	}
	return b.String()
}

// TestTransitions compares the table with testdata/transitions.table.
func TestTransitions(t *testing.T) {
	transcript.File(t, "testdata/transitions.table", table())
}
