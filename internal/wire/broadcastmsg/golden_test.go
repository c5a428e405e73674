package broadcastmsg

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
)

// document shows the golden messages' bytes.
const document = "../../../docs/server-collectives.md"

type golden struct {
	name, says string
	request    *Request
	reply      *Reply
}

func key() Key { return Key{Root: "h3", Incarnation: 5, Sequence: 42} }

func targets() []Target {
	return []Target{{Node: "h3", Tags: []Tag{{1}}}, {Node: "h4", Tags: []Tag{{1}, {2}}}}
}

// plain is a request over a group that its members know.
func plain() *Request {
	return &Request{
		Service: 7, Tree: Tree{KNomial, 2}, Key: key(), Patience: 5 * time.Millisecond, Level: time.Millisecond, Late: 2 * time.Millisecond,
		Index: MakeIndex("h3", 5, 1), Digest: DigestOf(7, targets()), Payload: []byte("hello"),
	}
}

func with(r *Request, change func(r *Request)) *Request {
	change(r)
	return r
}

// goldens are a message of each kind.
func goldens() []golden {
	return []golden{
		{"request", "a broadcast over a group that its members know", plain(), nil},
		{"request-creates", "the first broadcast over a delayed group: the members are aboard", with(plain(), func(r *Request) {
			r.Flags, r.Creation = Creates, &Creation{Name: "g", Targets: targets()}
		}), nil},
		{"request-populates", "a group is made by pulling its members", with(plain(), func(r *Request) {
			r.Flags, r.Bulk, r.Payload = Own|HasBulk, Bulk{Key: 9, Length: 100_000}, nil
		}), nil},
		{"request-destroys", "nothing follows over the group, of which one of many members is dead", with(plain(), func(r *Request) {
			r.Flags, r.Bulk, r.Payload = Own|Last|HasBulk, Bulk{Key: 9, Length: 100_000}, nil
			r.Subset, r.Filter = Filtered, MakeFilter(3000, func(rank int) bool { return rank != 1700 })
		}), nil},
		{"request-oob", "over an out-of-band group, on a complete 3-ary tree; the index is the service's own", with(plain(), func(r *Request) {
			r.Flags, r.Tree, r.Index = OutOfBand, Tree{KAry, 3}, Index{0xf1, 0xd0}
		}), nil},
		{"request-subset", "the last broadcast but for the subset of those alive, with bulk data", with(plain(), func(r *Request) {
			r.Flags, r.Subset, r.SubsetDigest, r.Bulk = HasBulk, Alive, DigestOf(7, targets()[:1]), Bulk{Key: 9, Length: 4096}
		}), nil},
		{"request-filter", "for every other of 24 members, those of them who live: here bits are shorter than runs", with(plain(), func(r *Request) {
			r.Subset, r.SubsetDigest = Filtered|Alive, DigestOf(7, targets()[:1])
			r.Filter = MakeFilter(24, func(rank int) bool { return rank%2 == 1 })
		}), nil},
		{"request-signed", "a broadcast over a group of many, whose root has signed it", with(plain(), func(r *Request) {
			r.Flags, r.Proof = Proven, &Proof{Floor: 41, Signature: bytes.Repeat([]byte{0xab}, SignatureSize)}
		}), nil},
		{"request-tagged", "a broadcast over a group of few, with a tag for each of two of them", with(plain(), func(r *Request) {
			r.Flags, r.Proof = Proven, &Proof{Floor: 42, Tags: bytes.Repeat([]byte{0xcd}, 2*TagSize)}
		}), nil},
		{"reply", "three nodes ran it", nil, &Reply{Key: key(), Final: true, Ran: 3, Body: []byte("h4 h5 h6")}},
		{"reply-missing", "two did, a subtree of four was not reached, and a node denied it", nil, &Reply{
			Key: key(), Final: true, Ran: 2, Missing: []Missing{{"h8", 4, Dead, ""}, {"h9", 1, Denied, "by a rule"}}, Body: []byte("h4 h5"),
		}},
		{"reply-refused", "pre-request refused it", nil, &Reply{Key: key(), Final: true, Status: Refused, Reason: "stopping"}},
		{"reply-part", "the last part of a reply of two", nil, &Reply{Key: key(), Final: true, Part: 1, Offset: MinPart, Ran: 1, Body: []byte{1, 2, 3}}},
	}
}

func (g *golden) bytes() []byte {
	if g.request != nil {
		return g.request.Append(nil)
	}
	return g.reply.Append(nil)
}

func (g *golden) listing() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", g.says)
	m := g.bytes()
	for at := 0; at < len(m); at += 8 {
		fmt.Fprintf(&b, "%4d  %-16x  %s\n", at, m[at:min(at+8, len(m))], printable(m[at:min(at+8, len(m))]))
	}
	return b.String()
}

func printable(b []byte) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '.'
		}
		return r
	}, strings.ToValidUTF8(string(b), "."))
}

// TestGolden: each golden message is written and read as its file says, and the
// document has it.
func TestGolden(t *testing.T) {
	doc, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	var listings []transcript.Listing
	for _, g := range goldens() {
		listings = append(listings, transcript.Listing{Name: g.name, Text: g.listing(), Read: g.read})
		if !strings.Contains(string(doc), "`"+g.name+"`") {
			t.Errorf("%s does not report %s", document, g.name)
		}
	}
	transcript.Listings(t, filepath.Join("testdata", "golden"), listings)
}

func (g *golden) read(t *testing.T, m []byte) {
	t.Helper()
	var got any
	var want any = g.reply
	var err error
	if g.request != nil {
		want = g.request
		got, err = decodeRequest(m)
		if g.request.Size() != len(m) {
			t.Errorf("%s: Size is %d, it has %d", g.name, g.request.Size(), len(m))
		}
	} else {
		got, err = decodeReply(m)
	}
	if err != nil {
		t.Errorf("%s: %v", g.name, err)
		return
	}
	empty := cmp.Comparer(func(a, b []byte) bool { return bytes.Equal(a, b) })
	if diff := cmp.Diff(want, got, empty); diff != "" {
		t.Errorf("%s is read as another (-want +got):\n%s", g.name, diff)
	}
}

// TestDocumentHasEveryStatus: the document's table of statuses is the code's.
func TestDocumentHasEveryStatus(t *testing.T) {
	doc, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for s := range Status(255) {
		row := fmt.Sprintf("| %d | %v | %v |", uint8(s), s, s.Type())
		if has := strings.Contains(string(doc), row); has != s.Valid() {
			t.Errorf("the document has the row %q: %v, want %v", row, has, s.Valid())
		}
	}
}
