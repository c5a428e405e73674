package attack_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// field is a part of a message.
type field struct {
	name     string
	at, size int
}

// message is a valid one, with its fields.
type message struct {
	name   string
	bytes  []byte
	fields []field
}

// forged is a message of which one field is another's.
type forged struct {
	what  string // message, field and mutation
	field string
	bytes []byte
}

// mutations are what becomes of a field; other is that field of another message, if there is one.
var mutations = []struct {
	name string
	of   func(b, other []byte, r *rand.Rand)
}{
	{"zero", func(b, _ []byte, _ *rand.Rand) { clear(b) }},
	{"ones", func(b, _ []byte, _ *rand.Rand) {
		for i := range b {
			b[i] = 0xff
		}
	}},
	{"plus one", func(b, _ []byte, _ *rand.Rand) {
		for i := len(b) - 1; i >= 0; i-- {
			if b[i]++; b[i] != 0 {
				return
			}
		}
	}},
	{"another's", func(b, other []byte, _ *rand.Rand) { copy(b, other) }},
	{"random", func(b, _ []byte, r *rand.Rand) {
		for i := range b {
			b[i] = byte(r.Uint32())
		}
	}},
}

// forge returns m with each field forged in each way, cut at each field, and with a byte more; those
// that are m again are left out. other is a message of the same layout that means another: nil: none.
func (m *message) forge(other []byte, r *rand.Rand) (all []forged) {
	add := func(field, how string, b []byte) {
		if !bytes.Equal(b, m.bytes) {
			all = append(all, forged{fmt.Sprintf("%s, %s %s", m.name, field, how), field, b})
		}
	}
	for _, f := range m.fields {
		if f.at >= len(m.bytes) {
			continue
		}
		end := min(f.at+f.size, len(m.bytes))
		for _, change := range mutations {
			b := slices.Clone(m.bytes)
			var theirs []byte
			if len(other) >= end {
				theirs = other[f.at:end]
			}
			change.of(b[f.at:end], theirs, r)
			add(f.name, change.name, b)
		}
		add(f.name, "cut", slices.Clone(m.bytes[:f.at]))
	}
	add("end", "one more", append(slices.Clone(m.bytes), 0))
	return all
}

// words are fields of so many bytes, for messages whose fields have no fixed place.
func words(n, size int) (all []field) {
	for at := 0; at < n; at += size {
		all = append(all, field{fmt.Sprint("byte ", at), at, min(size, n-at)})
	}
	return all
}

// golden reads the golden messages of a package: one file each, a line for each field, "offset hex
// name". Of messages without named fields each word of so many bytes is one.
func golden(t *testing.T, dir string, size int) (all []message) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.hex"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", dir, len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := message{name: strings.TrimSuffix(filepath.Base(file), ".hex")}
		for line := range strings.Lines(string(text)) {
			parts := strings.Fields(line)
			if len(parts) < 2 || parts[0] == "#" {
				continue
			}
			b, err := hex.DecodeString(parts[1])
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			name, _, _ := strings.Cut(strings.Join(parts[2:], " "), ":")
			m.fields = append(m.fields, field{name, len(m.bytes), len(b)})
			m.bytes = append(m.bytes, b...)
		}
		if size > 0 {
			m.fields = words(len(m.bytes), size)
		}
		all = append(all, m)
	}
	if testing.Short() {
		return all[:1]
	}
	return all
}
