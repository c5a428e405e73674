//go:build unix

package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestModeOfAnExistingStore: what others may do with a store that was put back, as from a
// backup, ends when it is opened, and that is reported.
func TestModeOfAnExistingStore(t *testing.T) {
	for before, want := range map[fs.FileMode]fs.FileMode{0o600: 0o600, 0o644: 0o600, 0o660: 0o600, 0o666: 0o600, 0o700: 0o700} {
		path := filepath.Join(t.TempDir(), "store")
		s, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if is, exposed := s.Exposed(); exposed {
			t.Errorf("a new one has mode %v", is)
		}
		if err := errors.Join(s.Close(), os.Chmod(path, before)); err != nil {
			t.Fatal(err)
		}
		if s, err = Open(path); err != nil {
			t.Fatal(err)
		}
		if is, exposed := s.Exposed(); exposed != (want != before) || exposed && is != before {
			t.Errorf("%v: reported as %v, %v", before, is, exposed)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%v: now %v, %v", before, info.Mode(), err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
