package attributes

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
	"github.com/tributary-fabric/tributary/internal/wire/cursor"
)

const p, q, r Life = 0x7070707070707070, 0x7171717171717171, 0x7272727272727272

// goldens are a message of each kind, and of each kind of section.
var goldens = []struct {
	name, says string
	message    Message
}{
	{"digest", "version 5 of p's map and version 300 of q's are here", &Digest{Maps: []Map{{p, 5}, {q, 300}}}},
	{"request", "what is newer than 2 of p's, and all of q's", &Request{Maps: []Map{{p, 2}, {q, 0}}}},
	{"request-push", "the same, of all neighbours; who has nothing is silent", &Request{Push: true, Maps: []Map{{p, 2}}}},
	{"reply", "two entries of p's, nothing of q's, and too much of r's", &Reply{Sections: []Section{
		{Life: p, Base: 2, Version: 5, Floor: 1, Entries: []Entry{
			{Version: 3, Key: "color", Value: []byte("red")}, {Version: 5, Key: "size", Deleted: true},
		}},
		{Life: q},
		{Life: r, Version: 9},
	}}},
	{"reply-empty-value", "a value of no bytes is not a tombstone", &Reply{Sections: []Section{
		{Life: p, Version: 1, Entries: []Entry{{Version: 1, Key: "k", Value: []byte{}}}},
	}}},
}

// listing takes a message apart as Decode does and reports what each field is.
type listing struct {
	cursor.Cursor
	whole []byte
	text  strings.Builder
}

func (l *listing) line(before int, what string) {
	at := len(l.whole) - before
	fmt.Fprintf(&l.text, "%3d  %-16x  %s\n", at, l.whole[at:len(l.whole)-len(l.B)], what)
}

func (l *listing) number(what string) uint64 {
	before := len(l.B)
	v := l.UpTo(math.MaxUint64)
	l.line(before, fmt.Sprintf("%s: %d", what, v))
	return v
}

func (l *listing) bytes(n uint64, what string) {
	before := len(l.B)
	l.line(before, fmt.Sprintf("%s: %q", what, l.Take(int(n))))
}

func (l *listing) life() {
	before := len(l.B)
	var life Life
	cursor.Uint64(&l.Cursor, &life)
	l.line(before, fmt.Sprintf("life: %x", uint64(life)))
}

func (l *listing) maps() {
	for range l.number("maps") {
		l.life()
		l.number("version")
	}
}

func (l *listing) section() {
	l.life()
	if l.number("version") == 0 {
		return
	}
	n := l.number("entries")
	if n == 0 {
		return
	}
	l.number("base")
	l.number("floor")
	for range n {
		l.number("entry: versions above the one before")
		l.bytes(l.number("bytes of the key"), "key")
		if n := l.number("bytes of the value and 1, or 0: a tombstone"); n > 1 {
			l.bytes(n-1, "value")
		}
	}
}

func listingOf(says string, m Message) string {
	b := m.Append(nil)
	l := listing{Cursor: cursor.Cursor{B: b}, whole: b}
	fmt.Fprintf(&l.text, "# %s\n", says)
	if kind := l.number("kind"); kind == uint64(replyKind) {
		for range l.number("sections") {
			l.section()
		}
	} else {
		l.maps()
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
