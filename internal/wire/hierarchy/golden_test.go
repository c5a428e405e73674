package hierarchy

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
	"github.com/tributary-fabric/tributary/internal/wire/cursor"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

const (
	h1 gossip.ID = "h1@10.0.0.1:7946"
	h2 gossip.ID = "h2@10.0.0.2:7946"
	s1 gossip.ID = "s1@10.1.0.1:7946"
	s2 gossip.ID = "s2@[fd00::2]:7946"
)

// goldens are a message of each kind.
var goldens = []struct {
	name, says string
	message    Message
}{
	{"hello", "h1 is a delegate of zone 300", &Hello{Zone: 300, From: h1, Incarnation: 5}},
	{"assign", "s1 and s2 supervise zone 7", &Assign{Zone: 7, Supervisors: []gossip.ID{s1, s2}, Contacts: []gossip.ID{h2}}},
	{"change", "h1 has left with code 3, and h2 was suspected; h1 is back", &Change{Zone: 7,
		Leaves: []Leave{{h1, gossip.Version{Incarnation: 5, Minor: 1}, 0, gossip.Exit{Given: true, Code: 3}}, {h2, gossip.Version{Incarnation: 1, Minor: 9}, 1, gossip.Exit{}}},
		Alives: []Member{{h1, gossip.Version{Incarnation: 6, Minor: 1}}},
	}},
	{"change-base", "a piece of zone 7's view that is not the last", &Change{Zone: 7, Base: true, Alives: []Member{{h1, gossip.Version{Incarnation: 5, Minor: 1}}}}},
	{"change-none", "zone 7 is not supervised here", &Change{Zone: 7, None: true}},
	{"beat", "I am there", &Beat{}},
	{"fetch", "zone 7's view, and what changes in it", &Fetch{Zone: 7, Follow: true}},
}

// listing takes a message apart as Decode does and reports what each field is.
type listing struct {
	cursor.Cursor
	whole []byte
	text  strings.Builder
}

// field reports a field as read reports its value.
func (l *listing) field(what string, read func() any) {
	at := len(l.whole) - len(l.B)
	v := read()
	fmt.Fprintf(&l.text, "%3d  %-16x  %s: %v\n", at, l.whole[at:len(l.whole)-len(l.B)], what, v)
}

func (l *listing) number(what string) (v uint64) {
	l.field(what, func() any { v = l.UpTo(math.MaxUint64); return v })
	return v
}

func (l *listing) id() {
	l.field("ID and its length", func() any {
		var v gossip.ID
		id(&l.Cursor, &v)
		return v
	})
}

func (l *listing) version() {
	l.field("incarnation, minor", func() any {
		var v gossip.Version
		version(&l.Cursor, &v)
		return v
	})
}

func (l *listing) change() {
	var flags byte
	l.field("flags", func() any {
		flags = l.Byte()
		var names []string
		for i, name := range []string{"base", "last", "none"} {
			if flags>>i&1 != 0 {
				names = append(names, name)
			}
		}
		return strings.Join(names, ", ")
	})
	if flags&4 != 0 {
		return
	}
	if flags&1 == 0 {
		for range l.number("leaves") {
			l.id()
			l.version()
			l.number("cause")
			l.field("exit", func() any {
				var e gossip.Exit
				exit(&l.Cursor, &e)
				return e
			})
		}
	}
	for range l.number("alives") {
		l.id()
		l.version()
	}
}

func listingOf(says string, m Message) string {
	b := m.Append(nil)
	l := listing{Cursor: cursor.Cursor{B: b}, whole: b}
	fmt.Fprintf(&l.text, "# %s\n", says)
	kind := byte(l.number("kind"))
	if kind != beatKind {
		l.number("zone")
	}
	switch kind {
	case helloKind:
		l.id()
		l.number("incarnation")
	case assignKind:
		for _, what := range []string{"supervisors", "contacts"} {
			for range l.number(what) {
				l.id()
			}
		}
	case changeKind:
		l.change()
	case fetchKind:
		l.number("follow")
	}
	return l.text.String()
}

// TestGolden: each golden message is written and read as its file says.
func TestGolden(t *testing.T) {
	var all []transcript.Listing
	for _, g := range goldens {
		all = append(all, transcript.Listing{Name: g.name, Text: listingOf(g.says, g.message), Read: func(t *testing.T, raw []byte) {
			m, err := Decode(raw)
			if diff := cmp.Diff(g.message, m); err != nil || diff != "" {
				t.Errorf("read as %+v: %v\n%s", m, err, diff)
			}
			if n := g.message.Size(); len(raw) > n {
				t.Errorf("%d bytes, said to be %d at most", len(raw), n)
			}
		}})
	}
	transcript.Listings(t, "testdata/golden", all)
}
