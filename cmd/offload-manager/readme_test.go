package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// indentedCode matches the lines of a page that are code by their indentation.
var indentedCode = regexp.MustCompile(`(?m)^(?: {4}|\t)(\S.*)$`)

// shellOf returns the command lines of a page.
func shellOf(t *testing.T, path string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	without := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(string(text), "")
	for _, m := range indentedCode.FindAllStringSubmatch(without, -1) {
		lines = append(lines, m[1])
	}
	return lines
}

// TestReadmeCommands runs every command line of README.md as it stands there, in a
// folder where the files are of which it speaks. (Its pieces of Go are run by
// internal/whole/embedded.)
func TestReadmeCommands(t *testing.T) {
	lines := shellOf(t, "../../README.md")
	if len(lines) < 5 {
		t.Errorf("README.md has %d command lines: %q", len(lines), lines)
	}
	directory := t.TempDir()
	fabric, err := os.ReadFile("../../docs/examples/leaf-spine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(directory, "fabric.yaml"), fabric, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		t.Run(strings.Fields(line)[0]+" "+strings.Fields(line)[1], func(t *testing.T) { runLine(t, directory, line) })
	}
	if svg, err := os.ReadFile(filepath.Join(directory, "tree.svg")); err != nil || !strings.Contains(string(svg), "<svg") {
		t.Errorf("the picture of a fabric of yours: %q, %v", svg, err)
	}
}

func runLine(t *testing.T, directory, line string) {
	words := strings.Fields(line)
	var cmd *exec.Cmd
	switch {
	case line == "go test ./...": // this is one of them
		return
	case strings.HasPrefix(line, "go run ./cmd/"), strings.HasPrefix(line, "go run -C bench ./cmd/"):
		at := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "./cmd/") })
		name := filepath.Base(words[at])
		if name == "collbench" && (runtime.GOOS != "linux" || os.Geteuid() != 0) {
			t.Skip("needs root on Linux, as README.md says")
		}
		cmd = exec.CommandContext(t.Context(), binary(t, name), words[at+1:]...)
	case strings.HasPrefix(line, "sudo ./mininet/run.py "): // .ci/run runs it
		const python = "/usr/bin/python3" // Debian's, which has Mininet
		if _, err := os.Stat(python); err != nil {
			t.Skip(err)
		}
		path, err := filepath.Abs("../../mininet")
		if err != nil {
			t.Fatal(err)
		}
		read := "import sys; sys.dont_write_bytecode = True; sys.path.insert(0, sys.argv[1]); import run; run.options(sys.argv[2:])"
		cmd = exec.CommandContext(t.Context(), python, append([]string{"-c", read, path}, words[2:]...)...)
	default:
		t.Fatalf("how to run %q is not known here", line)
	}
	cmd.Dir = directory
	switch out, err := cmd.CombinedOutput(); {
	case err != nil && strings.Contains(string(out), "has no Mininet"):
		t.Skip(string(out))
	case err != nil:
		t.Errorf("%s: %v\n%s", line, err, out)
	}
}

// TestCommandsOfThePages looks at every line of a page that runs a program of this
// module: its commands and flags are there.
func TestCommandsOfThePages(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	ours := regexp.MustCompile(`^(?:sudo )?(?:perf record .* -- )?(?:go run (?:-C bench )?\./cmd/|\./|mininet> \S+ )?(offload-manager|switch-agent|collbench) ([^#>|]*)`)
	seen := 0
	for _, page := range append(pages, "../../README.md", "../../mininet/README.md", "../../bench/peers/README.md") {
		for _, line := range shellOf(t, page) {
			m := ours.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			seen++
			words := strings.Fields(strings.TrimSuffix(strings.TrimSpace(m[2]), `\`))
			if out, err := exec.CommandContext(t.Context(), binary(t, m[1]), append(words, "--help")...).CombinedOutput(); err != nil {
				t.Errorf("%s: %s: %s", page, line, out)
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d lines were found", seen)
	}
}
