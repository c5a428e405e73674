//go:build unix

package secretfile_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/driver/secretfile"
)

// TestOthersMayNotRead: a file that others may read or write is refused, with what to do;
// also behind a symbolic link, whose own mode says nothing.
func TestOthersMayNotRead(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "key"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(path, []byte("secret"), 0o600), os.Symlink(path, link)); err != nil {
		t.Fatal(err)
	}
	for mode, advice := range map[fs.FileMode]string{
		0o600: "", 0o400: "", 0o700: "",
		0o644: "chmod 0600", 0o640: "chmod 0600", 0o660: "chmod 0600", 0o604: "chmod 0600", 0o602: "chmod 0600", 0o444: "chmod 0400", 0o777: "chmod 0700",
	} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{path, link} {
			text, err := secretfile.Read(at)
			if advice == "" && (err != nil || string(text) != "secret") {
				t.Errorf("%v: %q, %v", mode, text, err)
			}
			if advice != "" && (!errors.Is(err, secretfile.ErrMode) || !strings.Contains(err.Error(), advice+" "+at) || text != nil) {
				t.Errorf("%v: %q, %v", mode, text, err)
			}
		}
	}
}

// TestGroupOfAnotherOwner: where somebody else owns the file, its group may read it.
func TestGroupOfAnotherOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	path := filepath.Join(t.TempDir(), "key")
	if err := errors.Join(os.WriteFile(path, []byte("secret"), 0o600), os.Chown(path, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	for mode, ok := range map[fs.FileMode]bool{0o640: true, 0o440: true, 0o644: false, 0o604: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := secretfile.Read(path); errors.Is(err, secretfile.ErrMode) == ok || ok && err != nil {
			t.Errorf("%v: %v", mode, err)
		}
	}
}

func TestTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, bytes.Repeat([]byte{'x'}, secretfile.Most+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := secretfile.Read(path); !errors.Is(err, secretfile.ErrSize) {
		t.Error(err)
	}
	if _, err := secretfile.Read(path + ".not"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
