package transcript

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A Listing is a golden message: its bytes with what they are, for people. A
// line has an offset, the bytes there in hexadecimal digits, and words; one that
// begins with # is a comment.
type Listing struct {
	Name string // of its file, DIR/NAME.hex
	Text string

	// Read is given the bytes that the file lists, to decode them.
	Read func(t *testing.T, raw []byte)
}

// Listings reports where dir has not just these, each with its text. With
// -update it writes the files first.
func Listings(t *testing.T, dir string, listings []Listing) {
	t.Helper()
	files := map[string]bool{}
	for _, l := range listings {
		file := filepath.Join(dir, l.Name+".hex")
		files[file] = true
		t.Run(l.Name, func(t *testing.T) {
			File(t, file, l.Text)
			l.Read(t, listed(t, l.Text))
		})
	}
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range found {
		if !files[file] {
			t.Errorf("%s is no golden message's file", file)
		}
	}
}

// File reports where file has not this text. With -update it writes it first.
func File(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s differs (-file +got); run with -update and review the difference:\n%s", file, diff)
	}
}

// listed returns the bytes of a listing.
func listed(t *testing.T, text string) []byte {
	t.Helper()
	var raw []byte
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var at int
		var digits string
		if n, err := fmt.Sscan(line, &at, &digits); n != 2 || at != len(raw) {
			t.Fatalf("line %q: %v, offset %d", line, err, len(raw))
		}
		b, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		raw = append(raw, b...)
	}
	return raw
}
