package attributes

import (
	"bytes"
	"errors"
	"math"
	"testing"
)

// TestMalformed: what Append would not write is refused.
func TestMalformed(t *testing.T) {
	section := func(change func(s *Section)) []byte {
		s := Section{Life: p, Base: 2, Version: 5, Entries: []Entry{{Version: 3, Key: "k", Value: []byte("v")}, {Version: 5, Key: "j"}}}
		change(&s)
		return (&Reply{Sections: []Section{s}}).Append(nil)
	}
	if _, err := Decode(section(func(*Section) {})); err != nil {
		t.Fatal(err)
	}
	many := make([]Entry, 10)
	for i := range many {
		many[i] = Entry{Version: uint64(i + 3), Key: "k", Value: make([]byte, MaxValue)}
	}
	for name, b := range map[string][]byte{
		"empty":               {},
		"no kind":             {0},
		"unknown kind":        {9, 0},
		"cut off":             (&Digest{Maps: []Map{{p, 5}}}).Append(nil)[:9],
		"too long":            append((&Digest{}).Append(nil), 0),
		"more than there is":  {digestKind, 200, 1, 0},
		"offers nothing":      (&Digest{Maps: []Map{{p, 0}}}).Append(nil),
		"a long number":       {digestKind, 0x80, 0},
		"a number too large":  {digestKind, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2},
		"not the version":     section(func(s *Section) { s.Version = 6 }),
		"falling":             section(func(s *Section) { s.Entries[1].Version = 3 }),
		"not above the base":  section(func(s *Section) { s.Base = 3 }),
		"around the end":      section(func(s *Section) { s.Base = math.MaxUint64 }),
		"floor above version": section(func(s *Section) { s.Floor = 6 }),
		"no key":              section(func(s *Section) { s.Entries[0].Key = "" }),
		"a long key":          section(func(s *Section) { s.Entries[0].Key = string(make([]byte, MaxKey+1)) }),
		"a long value":        section(func(s *Section) { s.Entries[0].Value = make([]byte, MaxValue+1) }),
		"a long map":          section(func(s *Section) { s.Entries, s.Version = many, 12 }),
	} {
		if m, err := Decode(b); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: read as %+v, %v", name, m, err)
		}
	}
}

// FuzzDecode: what can be read has one form, and is no longer than it says.
func FuzzDecode(f *testing.F) {
	for _, g := range goldens {
		f.Add(g.message.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
		if err != nil {
			return
		}
		if again := m.Append(nil); !bytes.Equal(again, b) || len(b) > m.Size() {
			t.Errorf("%x is read as %+v of %d bytes, which is written %x", b, m, m.Size(), again)
		}
	})
}
