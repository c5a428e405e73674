// Package transcript runs the transcripts in a package's testdata. A transcript is a
// text file of commands, each block followed by ---- and its whole output, which is
// reviewed as a difference. The idea is that of etcd-io/raft's interaction tests.
package transcript

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the transcripts and golden messages in testdata anew, and documents that show them")

// Run replays every testdata/*.txt and reports where what comes out is not what
// the file says. With -update it writes the file instead.
func Run(t *testing.T, replay func(text string) string) {
	t.Helper()
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
			File(t, file, replay(string(want)))
		})
	}
}

// Blocks returns text with what do makes of the commands of each block. Blocks
// are parted by an empty line; one without ---- is a comment.
func Blocks(text string, do func(commands string) string) string {
	var b strings.Builder
	for i, block := range strings.Split(strings.TrimRight(text, "\n"), "\n\n") {
		if i > 0 {
			b.WriteString("\n")
		}
		commands, _, isBlock := strings.Cut(block+"\n", "----\n")
		b.WriteString(commands)
		if isBlock {
			b.WriteString("----\n" + do(commands))
		}
	}
	return b.String()
}

// Lines returns the commands of a block without its comments, which begin
// with #.
func Lines(commands string) []string {
	var lines []string
	for line := range strings.Lines(commands) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// BlockLines is Blocks of what do makes of each command of a block, one after the other.
func BlockLines(text string, do func(line string) string) string {
	return Blocks(text, func(commands string) string {
		var b strings.Builder
		for _, line := range Lines(commands) {
			b.WriteString(do(line))
		}
		return b.String()
	})
}

// Commands returns text with what do makes of each command: a line, ---- and
// its output, parted by an empty line. Comments stand alone.
func Commands(text string, do func(line string) string) string {
	var b strings.Builder
	skip := false // the output of before
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case skip:
			skip = line != ""
		case line == "----":
			skip = true
		case line == "":
		case strings.HasPrefix(line, "#"):
			b.WriteString(line + "\n")
		default:
			b.WriteString(line + "\n----\n" + do(line) + "\n")
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}
