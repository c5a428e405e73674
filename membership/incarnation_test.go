package membership

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestIncarnationRises also when the clock goes back.
func TestIncarnationRises(t *testing.T) {
	file := filepath.Join(t.TempDir(), "incarnation")
	at := time.Unix(1_700_000_000, 0)
	var last uint64
	for _, now := range []time.Time{at, at.Add(time.Hour), at.Add(-time.Hour), at, time.Unix(0, 0), time.Unix(-5, 0), at.Add(2 * time.Hour)} {
		n, again, err := nextIncarnation(file, now)
		if err != nil {
			t.Fatal(err)
		}
		if n <= last || again != (last > 0) {
			t.Errorf("%d at %v, after %d; again %v", n, now, last, again)
		}
		last = n
	}
	if want := uint64(at.Add(2 * time.Hour).UnixNano()); last != want {
		t.Errorf("%d, want the clock's %d where that is larger", last, want)
	}
	left, err := filepath.Glob(file + "*")
	if err != nil || len(left) != 1 {
		t.Errorf("files: %v, %v", left, err)
	}
}

func TestIncarnationOfAMalformedFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "incarnation")
	for _, text := range []string{"", "soon", "-1", "18446744073709551615", "18446744073709551616"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, _, err := nextIncarnation(file, time.Now()); !errors.Is(err, ErrState) || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
	if _, _, err := nextIncarnation(filepath.Join(file, "below"), time.Now()); !errors.Is(err, ErrState) {
		t.Errorf("below a file: %v", err)
	}
	if n, again, err := nextIncarnation("", time.Unix(0, 77)); n != 77 || again || err != nil {
		t.Errorf("without a file: %d, %v", n, err)
	}
}
