package peering

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
)

// situation is a name and the commands that bring it about.
type situation struct{ name, by string }

// situations are those in which a can be as to the channel of class 0 to b, whose name is
// after its own, and how it gets there.
var situations = []situation{
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
	"want b 0", "hold b 0", "release b 0", "learn b inc=5", "learn b inc=6", "learn b inc=4",
	"answer d1 accept", "answer d1 accept inc=4", "answer d1 accept inc=6", "answer d1 refuse inc=0", "answer d1 outdated", "answer d1 outdated inc=10", "answer d1 taken",
	"answer d1 duplicate", "answer d1 former inc=4", "answer d1 busy",
	"greet 9 call=3", "greet 9 call=5", "greet 9 call=5 accepted=1", "greet 9 call=5 inc=4", "greet 9 call=5 inc=6",
	"greet 9 call=5 known=10", "greet 9 call=5 known=11", "greet 9 class=2", "greet 9 class=3", "greet 9 from=a", "greet 9 to=x", "malformed 9",
	"finished d1", "finished 1", "renew d1", "renew 1", "end d1", "end 1",
	"sample d1 heard=1s", "sample d1 heard=2s", "sample d1 heard=5s", "sample d1 heard=5s deaf", "sample d1 used=10m", "sample 1 used=10m",
	"sample d1 reads=1", "sample d1 reads=2", "end 2", "end d2", "closing",
	"pass 100ms", "pass 5s",
}

// situationsOfPaths are those in which a connection to b can be that has, or had, several paths,
// and how it gets there.
var situationsOfPaths = []situation{
	{"up by a", "want b 0; answer d1 accept"},
	{"up by b", "arrive 1 10.0.0.1; greet 1 call=2"},
	{"calls a path", "want b 0; answer d1 accept; paired d1 pairs=3"},
	{"calls pair 0", "want b 0; answer d1 accept; paired d1 pairs=3 first=1"},
	{"two paths", "want b 0; answer d1 accept; paired d1 pairs=3; answer d2 accept"},
	{"lacks first", "want b 0; answer d1 accept; paired d1 pairs=3; answer d2 accept; end d1"},
	{"path failed", "want b 0; answer d1 accept; paired d1 pairs=3; answer d2 busy"},
	{"held, two", "hold b 0; answer d1 accept; paired d1 pairs=3; answer d2 accept"},
	{"two by b", "arrive 1 10.0.0.1; greet 1 call=2; arrive 2 10.0.0.1; greet 2 call=4 path=2 joins=2"},
	{"b lost first", "arrive 1 10.0.0.1; greet 1 call=2; arrive 2 10.0.0.1; greet 2 call=4 path=2 joins=2; end 1"},
	{"drains two", "want b 0; answer d1 accept; paired d1 pairs=3; answer d2 accept; finished d1"},
	{"b's drains", "arrive 1 10.0.0.1; greet 1 call=2; arrive 2 10.0.0.1; greet 2 call=4 path=2 joins=2; finished 1"},
	{"claimed, two", "want b 0; answer d1 accept; paired d1 pairs=3; answer d2 accept; arrive 3 10.0.0.2; greet 3 call=1 inc=6; sample d1 reads=1"},
	{"closing, two", "want b 0; answer d1 accept; paired d1 pairs=3; answer d2 accept; closing"},
}

// eventsOfPaths are what can happen then.
var eventsOfPaths = []string{
	"paired d1 pairs=1", "paired d1 pairs=2", "paired d1 pairs=3", "paired d1 pairs=7", "paired d1 pairs=0", "paired d2 pairs=3", "paired 1 pairs=3",
	"answer d2 accept", "answer d2 accept inc=6", "answer d2 ended", "answer d2 ended inc=6", "answer d2 duplicate", "answer d2 busy",
	"answer d2 outdated", "answer d2 outdated inc=10", "answer d2 refuse inc=0",
	"greet 9 call=5 path=1 joins=2", "greet 9 call=5 path=1 joins=2 first", "greet 9 call=5 path=2 joins=2", "greet 9 call=4 path=2 joins=2", "greet 9 call=2 path=2 joins=2",
	"greet 9 call=5 path=2 joins=1", "greet 9 call=5 path=2 joins=2 class=1", "greet 9 call=5 path=2 joins=2 inc=6", "greet 9 call=5 path=2 joins=2 inc=4",
	"greet 9 call=5 path=2 joins=2 from=c", "greet 9 call=5 path=9 joins=2", "greet 9 call=5 path=2 joins=2 class=2", "greet 9 call=5 path=2 joins=2 known=11",
	"greet 9 call=5", "greet 9 call=5 accepted=1", "greet 9 call=5 inc=6",
	"end d1", "end d2", "end d1; end d2", "end d2; end d1", "end 1", "end 2", "end 1; end 2",
	"finished d1", "finished d2", "finished 1", "finished 2", "renew d1", "renew d2", "renew 1", "renew 2", "sample d1 heard=5s", "sample d2 heard=5s", "sample 1 heard=5s", "sample d1 used=10m", "sample d1 reads=2",
	"want b 1; answer d3 outdated inc=10", "learn b inc=6", "closing", "pass 10ms", "pass 1s", "pass 5s",
}

// table reports, for every situation and event, how the channel is then, and what the core
// asks for; or only for those that change anything.
func table(situations []situation, events []string, width int, changesAlone bool) string {
	var b strings.Builder
	for _, s := range situations {
		for _, event := range events {
			t := newTrial(nil)
			t.do(s.by)
			if strings.Contains(event, " 9") {
				t.do("arrive 9 10.0.0.9")
			}
			before := t.state()
			out := strings.ReplaceAll(strings.TrimSpace(t.do(event)), "\n", "; ")
			if changesAlone && out == "" && t.state() == before {
				continue
			}
			row := fmt.Sprintf("%-14s%-*s%-32s%s", s.name, width, event, t.state(), out)
			b.WriteString(strings.TrimRight(row, " ") + "\n")
		}
	}
	return b.String()
}

// TestTransitions compares the tables with testdata/transitions.table, and with paths.table.
func TestTransitions(t *testing.T) {
	transcript.File(t, "testdata/transitions.table", table(situations, events, 28, false))
	transcript.File(t, "testdata/paths.table", table(situationsOfPaths, eventsOfPaths, 40, true))
}
