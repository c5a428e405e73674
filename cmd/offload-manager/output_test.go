package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// every calls f for a command and all beneath it.
func every(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, c := range cmd.Commands() {
		every(c, f)
	}
}

// Whatever can draw does it by the same two flags.
func TestPicturesHaveTheSameFlags(t *testing.T) {
	var draw []string
	every(newRoot(), func(cmd *cobra.Command) {
		picture, format := cmd.Flags().Lookup("picture"), cmd.Flags().Lookup("format")
		if picture != nil && cmd.Flags().Lookup("as") != nil {
			return // what it writes is a topology file, which has a picture beside it
		}
		svg := format != nil && strings.Contains(format.Usage, "svg")
		if svg != (picture != nil) || svg && format.Usage != "output `format`: text, json, svg" {
			t.Errorf("%s has --format %v, --picture %v", cmd.CommandPath(), format, picture)
		}
		if svg {
			draw = append(draw, strings.TrimPrefix(cmd.CommandPath(), "offload-manager "))
		}
	})
	if got := strings.Join(draw, ", "); got != "demo, group explain, group show, plan, topology show" {
		t.Errorf("what draws is %s", got)
	}
}

// A picture is the same beside the text and on the standard output, for commands
// that ask nobody and for those that ask the manager.
func TestPictures(t *testing.T) {
	d := deploy(t)
	d.ask("group", "create", "job", "h0", "h1")
	asked := []string{"--manager", d.address}
	for _, command := range [][]string{
		{"plan", "--topology", "leaf-spine:2,2,2"}, append([]string{"topology", "show"}, asked...),
		append([]string{"group", "show", "job"}, asked...), append([]string{"group", "explain", "job"}, asked...),
	} {
		path := filepath.Join(t.TempDir(), "x.svg")
		svg, _, err := execute(t, append(command, "--format", "svg")...)
		if err != nil || !strings.Contains(svg, "<svg") {
			t.Errorf("%v --format svg: %q, %v", command, svg, err)
		}
		text, _, err := execute(t, append(command, "--picture", path)...)
		if err != nil || strings.Contains(text, "<svg") || text == "" {
			t.Errorf("%v --picture: %q, %v", command, text, err)
		}
		if file, err := os.ReadFile(path); err != nil || string(file) != svg {
			t.Errorf("%v drew %d bytes to the file and %d to the output, %v", command, len(file), len(svg), err)
		}
	}
	for path, says := range map[string]string{t.TempDir(): "is a directory", "/nowhere/x.svg": "no such file"} {
		if out, _, err := execute(t, append([]string{"topology", "show", "--picture", path}, asked...)...); err == nil || !strings.Contains(err.Error(), says) || out != "" {
			t.Errorf("--picture %s: %q, %v", path, out, err)
		}
	}
}

// What fails leaves the picture that was there, and none where none was.
func TestPictureOfWhatFails(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "x.svg")
	for _, before := range []string{"", "an older picture"} {
		if before != "" {
			if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		root := newRoot()
		root.SetArgs([]string{"demo", "--topology", "leaf-spine:2,2,2", "--bytes", "64KiB", "--picture", path})
		root.SetOut(new(strings.Builder))
		root.SetErr(writer(func(p []byte) {
			if strings.Contains(string(p), "killing") {
				cancel()
			}
		}))
		if err := root.ExecuteContext(ctx); err == nil {
			t.Error("it was drawn")
		}
		if _, _, err := execute(t, "plan", "--topology", "thin-tree:4", "--picture", path); err == nil {
			t.Error("a plan of nothing was drawn")
		}
		all, err := os.ReadDir(directory)
		if text, _ := os.ReadFile(path); err != nil || string(text) != before || len(all) > 1 || before == "" && len(all) > 0 {
			t.Errorf("it left %v, %q, %v", all, text, err)
		}
	}
}

// writer takes what is written.
type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }
