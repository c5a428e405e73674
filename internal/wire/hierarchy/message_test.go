package hierarchy

import (
	"bytes"
	"errors"
	"testing"

	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// TestMalformed: what Append would not write is refused.
func TestMalformed(t *testing.T) {
	many := make([]gossip.ID, MaxNodes+1)
	for i := range many {
		many[i] = h1
	}
	fetch := (&Fetch{Zone: 7}).Append(nil)
	for name, b := range map[string][]byte{
		"empty":                {},
		"unknown kind":         {9},
		"cut off":              (&Hello{Zone: 7, From: h1, Incarnation: 500}).Append(nil)[:20],
		"too long":             append((&Beat{}).Append(nil), 0),
		"no ID":                (&Hello{Zone: 7}).Append(nil),
		"an ID that is none":   (&Hello{Zone: 7, From: "h1@nowhere"}).Append(nil),
		"zone too large":       {fetchKind, 0x80, 0x80, 0x80, 0x80, 0x10, 0},
		"a long number":        {fetchKind, 0x80, 0, 0},
		"unknown flag":         {fetchKind, 7, 2},
		"unknown flags":        {changeKind, 7, 8, 0, 0},
		"nobody supervises":    (&Assign{Zone: 7}).Append(nil),
		"too many supervisors": (&Assign{Zone: 7, Supervisors: many}).Append(nil),
		"too many contacts":    (&Assign{Zone: 7, Supervisors: many[:1], Contacts: many}).Append(nil),
		"none and the last":    {changeKind, 7, 4 | 2},
		"last and not a base":  (&Change{Zone: 7, Last: true}).Append(nil),
		"more than there are":  {changeKind, 7, 1, 200, 1},
		"a half exit":          append(fetch[:0:0], changeKind, 7, 0, 1, 2),
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
