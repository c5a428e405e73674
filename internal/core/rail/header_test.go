package rail

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
)

var fieldNames = [...]string{"sequence", "context", "restart", "tag", "size", "sending", "receiving", "region", "key", "offset", "heads"}

// example returns a fragment of a kind with a value of its own in each field.
func example(k kind) (h head, body []byte) {
	h.kind = k
	for _, f := range layouts[k].fields {
		v := 0x1112131415161718 * uint64(f+1) % 0xfedcba9876543210
		if f.width() == 4 {
			v >>= 32
		}
		h.words[f] = v
	}
	switch k {
	case kindBringDown, kindKick:
		h.path, h.class = 3, Fragment
	case kindNack, kindRefused:
		h.reason = forbidden
	}
	if layouts[k].hasBody {
		body = []byte("body")
	}
	return h, body
}

// TestGolden compares a fragment of each kind with testdata/golden, and reads it.
func TestGolden(t *testing.T) {
	var all []transcript.Listing
	for k := kindMatch; k < kinds; k++ {
		h, body := example(k)
		raw := append(h.append(nil), body...)
		var b strings.Builder
		fmt.Fprintf(&b, "# %s, class %s\n%d %x kind, path, class, reason\n", k, layouts[k].class, 0, raw[:4])
		at := 4
		for _, f := range layouts[k].fields {
			fmt.Fprintf(&b, "%d %x %s\n", at, raw[at:at+f.width()], fieldNames[f])
			at += f.width()
		}
		if len(body) > 0 {
			fmt.Fprintf(&b, "%d %x body\n", at, body)
		}
		all = append(all, transcript.Listing{Name: strings.ToLower(k.String()), Text: b.String(), Read: func(t *testing.T, raw []byte) {
			var got head
			rest, err := got.parse(raw)
			if err != nil || got != h || !bytes.Equal(rest, body) {
				t.Errorf("%+v, % x, %v instead of %+v", got, rest, err, h)
			}
			for cut := range layouts[k].size {
				if _, err := got.parse(raw[:cut]); !errors.Is(err, ErrMalformed) {
					t.Errorf("%d bytes of it: %v", cut, err)
				}
			}
			if _, err := got.parse(append(raw, 0)); (err == nil) != layouts[k].hasBody {
				t.Errorf("with a byte more: %v", err)
			}
		}})
	}
	transcript.Listings(t, "testdata/golden", all)
}

// FuzzHead reads bytes as a fragment; what can be read has just these bytes.
func FuzzHead(f *testing.F) {
	for k := kindMatch; k < kinds; k++ {
		h, body := example(k)
		f.Add(append(h.append(nil), body...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h head
		body, err := h.parse(b)
		if err != nil {
			return
		}
		if again := append(h.append(nil), body...); !bytes.Equal(again, b) {
			t.Fatalf("% x instead of % x", again, b)
		}
	})
}

// FuzzPeer lets fragments come that another side makes up, among completions, paths and
// requests. The Peer writes nowhere but into the memory of its requests, holds no more than
// it allows, and is empty at last.
func FuzzPeer(f *testing.F) {
	f.Add([]byte{0, 20, 1, 4, 0x20, 1, 3, 3, 200, 4, 2, 1, 5, 0})
	for k := kindMatch; k < kinds; k++ {
		f.Add([]byte{0, 9, 1, 9, 0x10 + byte(k), 0, 1, 0, 9, 1, 2, 0x11, 0, 0, 0, 0, 0, 0, 3, 1})
	}
	f.Fuzz(hostile)
}

// hostile reads commands from in.
func hostile(t *testing.T, in []byte) {
	var memory Memory
	const guard = 16
	region := fill(96, 5)
	memory.Register(MayRead|MayWrite, 77, region[guard:80:80])
	c := Config{Eager: 8, Fragment: 8, PutFrom: 24, MaxUnexpected: 64, MaxHeads: 8, Seed: 3, Regions: &memory}
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	var out Output
	var sent []uint32
	var guarded [][]byte
	requests, done := 0, 0
	flush := func() {
		for _, f := range out.Frames {
			sent = append(sent, f.Number)
		}
		done += len(out.Done)
		out.Reset()
		if bytes, heads := p.Held(); bytes > c.MaxUnexpected || heads > c.MaxHeads {
			t.Fatalf("%d bytes in %d messages are held", bytes, heads)
		}
	}
	for class := range classes {
		p.PathUp(0, class, 1, 0, 0, &out)
		p.PathUp(1, class, 1, 0, 0, &out)
	}
	next := func() byte {
		if len(in) == 0 {
			return 0
		}
		b := in[0]
		in = in[1:]
		return b
	}
	memoryOf := func(n byte) []byte {
		b := fill(int(n%64)+2*guard, 9)
		guarded = append(guarded, b)
		return b[guard : len(b)-guard : len(b)-guard]
	}
	// ids are numbers of requests that may be valid.
	id := func(b byte) uint64 { return uint64(b>>4)<<32 | uint64(b&0xf) }
	for len(in) > 0 && requests < 200 {
		switch op := next(); op {
		case 0:
			p.Send(&SendRequest{Tag: uint64(next() % 2), Data: memoryOf(next()), Buffered: next()%2 == 0}, 0, &out)
			requests++
		case 1:
			p.Recv(&RecvRequest{Tag: uint64(next() % 2), Ignore: AnyTag * uint64(next()%2), Data: memoryOf(next())}, 0, &out)
			requests++
		case 2:
			p.Put(&SendRequest{Data: memoryOf(next()), Handle: Handle{1, 77}}, 0, &out)
			p.Get(&RecvRequest{Data: memoryOf(next()), Handle: Handle{1, 77}}, 0, &out)
			requests += 2
		case 3:
			if len(sent) > 0 {
				i := int(next()) % len(sent)
				n := sent[i]
				sent = append(sent[:i], sent[i+1:]...)
				p.Sent(n, next()%2 == 0, 0, &out)
			}
		case 4:
			p.PathDown(next()%2, Class(next()%2), 0, &out)
		case 5:
			p.PathUp(next()%2, Class(next()%2), uint32(next()), 0, 0, &out)
		default:
			h := head{kind: kind(op - 0x10)}
			if h.kind == 0 || h.kind >= kinds {
				n := int(next())
				_ = p.Arrived(0, Class(op%2), in[:min(len(in), n)], 0, &out)
				break
			}
			for _, f := range layouts[h.kind].fields {
				switch f {
				case fieldSending, fieldReceiving:
					h.words[f] = id(next())
				case fieldSequence:
					h.words[f] = uint64(p.box.expected + uint32(int8(next())))
				case fieldKey:
					h.words[f] = 77
				default:
					h.words[f] = uint64(next())
				}
			}
			var body []byte
			if layouts[h.kind].hasBody {
				body = make([]byte, next()%32)
			}
			if err := p.Arrived(0, layouts[h.kind].class, append(h.append(nil), body...), 0, &out); err != nil && !errors.Is(err, ErrMalformed) {
				t.Fatal(err)
			}
		}
		flush()
	}
	p.Fail(errors.New("over"), 0, &out)
	flush()
	for len(sent) > 0 {
		n := sent[0]
		sent = sent[1:]
		p.Sent(n, false, 0, &out)
		flush()
	}
	if done != requests {
		t.Errorf("%d requests of %d are done", done, requests)
	}
	for _, b := range append(guarded, region) {
		want := fill(len(b), 9)
		if &b[0] == &region[0] {
			want = fill(len(b), 5)
		}
		if !bytes.Equal(b[:guard], want[:guard]) || !bytes.Equal(b[len(b)-guard:], want[len(b)-guard:]) {
			t.Fatal("it has written outside a request's memory")
		}
	}
}
