package switchreduce

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
)

// TestTranscripts runs every file in testdata: blocks of commands, and below
// ---- all that the core does. Commands are those of trial; the lines of a
// block are one batch. Besides, a line can be
//
//	reset        forget everything, as a switch that restarts does
//	wait 3s      let time pass before the batch
//	slots        list the slots
//	counters     list the counters that are not zero
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(text string) string {
		return transcript.Blocks(text, newTrial().block)
	})
}

// block runs the batches of a block: the lines up to each report.
func (t *trial) block(commands string) string {
	var report string
	for _, line := range strings.Split(strings.TrimRight(commands, "\n"), "\n") {
		command, arg, _ := strings.Cut(line, " ")
		switch {
		case strings.HasPrefix(line, "#"):
		case command == "reset":
			*t = trial{core: New(), cfg: t.cfg, now: t.now}
		case command == "wait":
			d, err := time.ParseDuration(arg)
			if err != nil {
				panic(err)
			}
			t.now = t.now.Add(d)
		case command == "slots":
			report += t.flush() + t.dump()
		case command == "counters":
			report += t.flush() + t.count()
		default:
			t.queue(line)
		}
	}
	if report += t.flush(); report == "" {
		return "nothing\n"
	}
	return report
}

func (t *trial) count() string {
	c := t.core.Counters()
	var b strings.Builder
	for _, e := range []struct {
		name string
		n    uint64
	}{
		{"taken", c.Taken}, {"partials", c.Partials}, {"resent", c.Resent}, {"results", c.Results},
		{"errors", c.Errors}, {"probes", c.Probes}, {"repeated", c.Repeated}, {"wants", c.Wants},
		{"heards", c.Heards}, {"losts", c.Losts}, {"relayed", c.Relayed}, {"idle", c.Idle},
		{"kept", c.Kept}, {"expired", c.Expired}, {"dropped", c.Dropped()},
	} {
		if e.n > 0 {
			fmt.Fprintf(&b, "%s %d\n", e.name, e.n)
		}
	}
	return b.String()
}
