package telemetry

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
)

// TestTranscripts runs every file in testdata: blocks of commands, those of trial, and
// below ---- all that the core puts out.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(text string) string {
		x := newTrial(Config{Streams: 3, Subscriptions: 2, All: 5, Batch: 3})
		return transcript.Blocks(text, func(commands string) string { return x.do(transcript.Lines(commands)...) })
	})
}

// situations are those in which a leaf can be in a stream that is subscribed to it on
// change, and how it gets there.
var situations = []struct{ name, by string }{
	{"unsent", "events; open 1 stream /interfaces onchange; ready 1"},
	{"waits, unsent", "events; open 1 stream /interfaces onchange; interfaces; ready 1; events up:a=UP"},
	{"sent", "events up:a=UP; open 1 stream /interfaces onchange; interfaces; ready 1; ready 1"},
	{"waits", "events up:a=UP; open 1 stream /interfaces onchange; interfaces; ready 1; events up:a=DOWN"},
	{"waits as removed", "events up:a=UP; open 1 stream /interfaces onchange; interfaces; ready 1; events"},
	{"suppressed", "events up:a=UP; open 1 stream /interfaces sample every=1s suppress; interfaces; ready 1; ready 1"},
	{"heartbeat", "events up:a=UP; open 1 stream /interfaces onchange beat=1s; interfaces; ready 1; ready 1"},
	{"collecting", "events up:a=UP; open 1 stream /interfaces onchange; ready 1"},
	{"updates only", "events up:a=UP; open 1 stream updates-only /interfaces onchange; interfaces; ready 1; ready 1"},
	{"polled", "events up:a=UP; open 1 poll /interfaces; interfaces; ready 1; ready 1"},
	{"once", "events up:a=UP; open 1 once /interfaces; ready 1"},
}

var happenings = []string{"events up:a=UP", "events up:a=DOWN", "events", "events failed", "interfaces", "poll 1", "ready 1", "pass 1s", "close 1"}

// table reports, for every situation, what is put out at what happens then, and how the
// leaf is in the stream.
func table() string {
	var b strings.Builder
	for _, s := range situations {
		for _, happens := range happenings {
			x := newTrial(Config{})
			x.do(s.by)
			out := strings.ReplaceAll(strings.TrimSpace(x.do(happens)), "\n", "; ")
			b.WriteString(strings.TrimRight(fmt.Sprintf("%-18s%-18s%-20s%s", s.name, happens, x.state(), out), " ") + "\n")
		}
	}
	return b.String()
}

// state is how the leaf is in stream 1.
func (t *trial) state() string {
	s := t.c.streamOf[1]
	if s == nil {
		return "no stream"
	}
	i := s.items[long("up:a")]
	switch {
	case i == nil:
		return "not there"
	case i.state == deleted:
		return "waits as removed"
	case i.state == updated && i.sent:
		return "waits"
	case i.state == updated:
		return "waits, unsent"
	case i.sent:
		return "sent"
	}
	return "unsent"
}

// TestTransitions compares the table with testdata/transitions.table.
func TestTransitions(t *testing.T) {
	transcript.File(t, "testdata/transitions.table", table())
}
