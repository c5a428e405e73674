package attribute

import (
	"fmt"
	"strings"
)

// situations are those in which a, whose neighbours are b and c, can be as to p,
// and how it gets there.
var situations = []struct {
	name string
	by   []string
}{
	{"outside", nil},
	{"owed", []string{"from b digest p:5"}},
	{"empty", []string{"join p"}},
	{"pending", []string{"join p", "from b digest p:5"}},
	{"known", []string{"join p", "from b digest p:5", "from b reply p:0..5 k=v@5"}},
	{"known, pending", []string{"join p", "from b digest p:5", "from b reply p:0..5 k=v@5", "from c digest p:7"}},
	{"gone", []string{"join p", "from b digest p:5", "from b reply p:0..5 k=v@5", "left p"}},
}

// events are what can happen then.
var events = []string{
	"join p", "left p",
	"from b digest p:5", "from c digest p:5", "from b digest p:7", "from c digest p:7", "from e digest p:9",
	"from b request p:0", "from b request p:5", "from b push p:0", "from b push p:5", "from e request p:0",
	"from b reply p:none", "from c reply p:none",
	"from b reply p:0..5 k=v@5", "from b reply p:5..7 j=w@7", "from c reply p:0..7 k=v@5 j=w@7", "from c reply p:0..6 k=v@6",
	"from b reply p:more:5", "from c reply p:more:7", "from e reply p:0..9 k=v@9",
	"down b", "down c", "up d", "pass 1s",
}

// table reports, for every situation and event, what a does, and how it is then.
func table() string {
	var b strings.Builder
	for _, s := range situations {
		for _, event := range events {
			t := newTrial()
			t.do("join b; join c; join d; up b; up c")
			t.do(s.by...)
			t.do("pass 1s")
			out := strings.ReplaceAll(strings.TrimSpace(t.do(event)), "\n", "; ")
			state := strings.TrimPrefix(t.c.String(), "a:0 b c d")
			row := fmt.Sprintf("%-15s%-34s%-16s%s", s.name, event, strings.TrimSpace(state), out)
			b.WriteString(strings.TrimRight(row, " ") + "\n")
		}
	}
	return b.String()
}
