package session

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the transcripts' outputs anew")

// TestTranscripts runs every file in testdata: blocks of commands, those of
// trial, and below ---- all that the session does. Run with -update to write
// the outputs, and review the difference.
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
		var lines []string
		for line := range strings.Lines(commands) {
			if !strings.HasPrefix(line, "#") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		if out := trial.do(lines...); out != "" {
			b.WriteString(out)
		} else {
			b.WriteString("nothing\n")
		}
	}
	return b.String()
}
