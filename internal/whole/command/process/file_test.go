package process_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

// holds wants one file of that text in a directory, and nothing else.
func holds(t *testing.T, path, text string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != text {
		t.Errorf("%s has %q, %v; want %q", path, got, err, text)
	}
	if all, err := os.ReadDir(filepath.Dir(path)); err != nil || len(all) != 1 {
		t.Errorf("beside it are %v, %v", all, err)
	}
}

// A file appears whole, or what was there stays.
func TestFileIsWholeOrAsItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.yaml")
	if err := process.WriteFile(path, []byte("first")); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "first")
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := process.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("sec"); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "first" {
		t.Errorf("while it is written, %q is there", got)
	}
	if err := f.Discard(); err != nil {
		t.Error(err)
	}
	holds(t, path, "first")
	if err := process.WriteFile(path, []byte("second")); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "second")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info, err)
	}
}

func TestFileThatCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "absent", "file")
	if err := process.WriteFile(path, nil); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path+":") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat("/dev/full"); err == nil {
		if err := process.WriteFile("/dev/full", []byte("x")); err == nil {
			t.Error("/dev/full took it")
		}
	}
}

// What a link leads to is replaced, and not the link.
func TestFileBehindALink(t *testing.T) {
	path, link := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "link")
	if err := os.WriteFile(path, []byte("first"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	if err := process.WriteFile(link, []byte("second")); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "second")
	if at, err := os.Readlink(link); err != nil || at != path {
		t.Errorf("the link leads to %q, %v", at, err)
	}
}
