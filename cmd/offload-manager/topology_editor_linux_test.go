package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// atTerminal runs a command whose standard input is a terminal, with an editor, which is a
// shell script with the file's path as $1. Temporary files are in the deployment's directory.
func (d *deployment) atTerminal(editor string, args ...string) (out, notes string, err error) {
	d.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		d.Skip(err)
	}
	defer keyboard.Close()
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		d.Fatal(err)
	}
	screen, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		d.Skip(err)
	}
	defer screen.Close()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(d.Context(), binary(d.T, "offload-manager"), args...)
	cmd.Env = append(os.Environ(), "TRIBUTARY_MANAGER="+d.address, "VISUAL=", "EDITOR=sh "+d.write("editor.sh", editor), "TMPDIR="+d.directory)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, &stdout, &stderr
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}

// TestTopologyEditor edits the operator's part in an editor: what is saved is set, what
// cannot be is opened again, and what is not put into effect is not lost.
func TestTopologyEditor(t *testing.T) {
	d := deploy(t)
	edit := []string{"topology", "edit"}
	left := func() []string {
		t.Helper()
		all, err := filepath.Glob(filepath.Join(d.directory, "topology-*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	const addHost = `sed -i '/^hosts:/a\  - h9' "$1"`
	if out, notes, err := d.atTerminal(addHost, append(edit, "--dry-run")...); err != nil || !containsAll(out, []string{"Would change (version 0", "host h9 added"}) {
		t.Errorf("dry run: %s, %s, %v", out, notes, err)
	}
	for _, nothing := range []string{"exit 0", `: > "$1"`} {
		if out, notes, err := d.atTerminal(nothing, edit...); err != nil || out != "" || !strings.Contains(notes, "nothing was edited") {
			t.Errorf("%s: %s, %s, %v", nothing, out, notes, err)
		}
	}
	overtaken := func(by string, version int) {
		t.Helper()
		editor := binary(t, "offload-manager") + " topology edit --add-host " + by + ` || exit 1
sed -i '/^hosts:/a\  - h7' "$1"`
		want := []string{fmt.Sprintf("it is version %d, and not %d", version+1, version), "what was edited is in "}
		if _, notes, err := d.atTerminal(editor, edit...); err == nil || !containsAll(notes, want) {
			t.Errorf("overtaken: %s, %v", notes, err)
		}
	}
	overtaken("h6", 0)
	if files := left(); len(files) != 1 || os.Remove(files[0]) != nil {
		t.Fatalf("left are %q", files)
	}
	again := `if grep -q 'It was not accepted' "$1"
then cp "$1" ` + filepath.Join(d.directory, "seen") + `; sed -i -e /^nonsense/d "$1"; ` + addHost + `
else echo 'nonsense: 1' >> "$1"
fi`
	if out, notes, err := d.atTerminal(again, edit...); err != nil || !containsAll(out, []string{"Changed (version 2", "host h9 added"}) {
		t.Errorf("after an error: %s, %s, %v", out, notes, err)
	}
	seen, err := os.ReadFile(filepath.Join(d.directory, "seen"))
	if err != nil {
		t.Fatal(err)
	}
	line := bytes.Count(seen[:bytes.Index(seen, []byte("\nnonsense"))+1], []byte("\n")) + 1
	if !regexp.MustCompile(fmt.Sprintf(`(?m)^# .*topology-[0-9]+\.yaml:%d: nonsense: `, line)).Match(seen) {
		t.Errorf("in line %d of\n%s", line, seen)
	}
	if _, notes, err := d.atTerminal("exit 3", edit...); err == nil || !containsAll(notes, []string{"nothing was changed", "editor sh", "exit status 3"}) {
		t.Errorf("an editor that fails: %s, %v", notes, err)
	}
	if _, notes, err := d.atTerminal(addHost, append(edit, "--version", "7")...); err == nil || !strings.Contains(notes, "it is version 2, and not 7") {
		t.Errorf("another version: %s, %v", notes, err)
	}
	if files := left(); len(files) > 0 {
		t.Errorf("left are %q", files)
	}

	// Saved twice with the same error, it is given up, but not lost; nor is what another
	// operator has overtaken.
	if _, notes, err := d.atTerminal(`grep -q nonsense "$1" || echo 'nonsense: 1' >> "$1"`, edit...); err == nil || len(left()) != 1 || !containsAll(notes, []string{"nothing was changed", "nonsense", left()[0]}) {
		t.Errorf("an error that stays: %s, %v", notes, err)
	}
	overtaken("h8", 2)
	if out := d.ask("topology", "get"); len(left()) != 2 || !containsAll(out, []string{"h6", "h8", "h9"}) || strings.Contains(out, "h7") {
		t.Errorf("at last it is %s", out)
	}
	if _, err := d.try(edit...); err == nil || !strings.Contains(err.Error(), "has to be a terminal") {
		t.Errorf("without a terminal: %v", err)
	}
}
