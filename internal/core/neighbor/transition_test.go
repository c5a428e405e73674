package neighbor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
)

// situations are those in which port 1 can be, and how it gets there.
var situations = []struct{ name, by string }{
	{"absent", ""},
	{"down", "down 1"},
	{"up", "set 1"},
	{"heard", "set 1; hear 1 b"},
	{"heard again", "set 1; hear 1 b; hear 1 b"},
	{"heard peer", "set 1; hear 1 b role=switch; sent 1"},
	{"looped", "set 1; hear 1 me"},
	{"down again", "set 1; hear 1 b; down 1"},
	{"removed", "set 1; hear 1 b; remove 1"},
	{"closed", "set 1; hear 1 b; close"},
}

// events are what can happen then, after the pause that follows a change.
var events = []string{
	"set 1", "set 1 text=other", "set 1 port=p2", "set 1 mac=7", "down 1", "remove 1", "close",
	"hear 1 b", "hear 1 b text=other", "hear 1 b ttl=0", "hear 1 c", "hear 1 c ttl=0", "hear 1 b role=switch", "hear 1 me", "raw 1 x",
	"request 1 b", "request 1 b role=none", "request 1 c to=2", "respond 1 b", "respond 1 c", "respond 1 b request=99",
	"skip 500ms", "skip 2m",
}

// table reports, for every situation and event, how the port is then, and what the core has
// put out.
func table() string {
	var b strings.Builder
	for _, s := range situations {
		for _, event := range events {
			t := newTrial(Config{})
			t.do(s.by, "pass 30ms")
			out := strings.ReplaceAll(strings.TrimSpace(t.do(event)), "\n", "; ")
			row := fmt.Sprintf("%-12s%-24s%-18s%s", s.name, event, t.state(), out)
			b.WriteString(strings.TrimRight(row, " ") + "\n")
		}
	}
	return b.String()
}

// TestTransitions compares the table with testdata/transitions.table.
func TestTransitions(t *testing.T) {
	transcript.File(t, "testdata/transitions.table", table())
}

// TestTranscripts runs every file in testdata: blocks of commands, those of trial, and
// below ---- all that the core puts out.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(text string) string {
		trial := newTrial(Config{})
		return transcript.Blocks(text, func(commands string) string {
			return trial.do(transcript.Lines(commands)...)
		})
	})
}
