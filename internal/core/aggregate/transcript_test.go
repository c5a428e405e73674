package aggregate

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the transcripts' outputs anew")

// TestTranscripts runs every file in testdata: blocks of commands, and below
// ---- all that the core does. Commands are those of trial; the lines of a
// block are one batch. Besides, a line can be
//
//	reset        forget everything, as a switch that restarts does
//	wait 3s      let time pass before the batch
//	slots        list the slots
//	counters     list the counters that are not zero
//
// Run with -update to write the outputs, and review the difference.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("transcript differs (-want +got):\n%s", diff)
			}
		})
	}
}

// replay runs a transcript's commands and returns it with the outputs they
// have now.
func replay(text string) string {
	var b strings.Builder
	trial := newTrial()
	for i, block := range strings.Split(strings.TrimRight(text, "\n"), "\n\n") {
		if i > 0 {
			b.WriteString("\n")
		}
		commands, _, isBlock := strings.Cut(block+"\n", "----\n")
		b.WriteString(commands)
		if !isBlock {
			continue
		}
		b.WriteString("----\n")
		b.WriteString(trial.block(commands))
	}
	return b.String()
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
