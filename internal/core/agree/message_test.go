package agree

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
)

const goldenSize = 300

// goldens are one message of each kind, of a group of goldenSize.
func goldens() []message {
	before := Value{Flags: 0xfffffffffffffffe, Failed: []uint32{0}}
	value := Value{Flags: 0x1122334455667788, Failed: []uint32{0, 7, 299}}
	first := stamp{ballot: 1}
	third := stamp{ballot: 200, wave: 3}
	return []message{
		{kind: Collect, number: 2, before: before, stamp: third, failed: []uint32{0, 7}},
		{kind: Lock, number: 2, before: before, stamp: third, failed: []uint32{0, 7}, lock: locked{value: value}},
		{kind: Commit, number: 1, stamp: third, failed: []uint32{0, 7}, lock: locked{value: value}},
		{kind: Ack, number: 2, before: before, stamp: first, flags: 0xff, lock: locked{is: true, isDecided: true, value: value}},
		{kind: Nak, number: 1, stamp: stamp{}, failed: []uint32{8, 9}},
		{kind: Late, number: 1, stamp: third, failed: []uint32{5}, isDown: true},
		{kind: Expelled},
		{kind: Ping},
		{kind: Gone},
	}
}

// listing lays out a message's bytes for people.
func listing(m *message) string {
	raw := m.bytes(goldenSize)
	text := fmt.Sprintf("# %v in a group of %d\n", m.kind, goldenSize)
	at := 0
	field := func(size int, what string) {
		if at+size <= len(raw) && size > 0 {
			text += fmt.Sprintf("%4d  %-20x %s\n", at, raw[at:at+size], what)
			at += size
		}
	}
	number := func(what string) { // a varint
		n := 1
		for at+n <= len(raw) && raw[at+n-1]&0x80 != 0 {
			n++
		}
		field(n, what)
	}
	ranks := func(list []uint32, what string) {
		number("count of " + what)
		for i, rank := range list {
			if i == 0 {
				number(fmt.Sprintf("rank %d", rank))
			} else {
				number(fmt.Sprintf("rank %d, as what it is beyond %d", rank, list[i-1]+1))
			}
		}
	}
	value := func(v *Value, what string) {
		field(8, what+": flags")
		ranks(v.Failed, what+": failed")
	}
	field(1, "kind")
	if m.kind >= Expelled {
		return text
	}
	field(4, "number of the agreement")
	if m.number > 1 {
		value(&m.before, "the decision before")
	}
	number("leader's rank")
	number("wave")
	ranks(m.failed, map[bool]string{false: "failed, not in the tree", true: "ranks"}[m.kind >= Ack])
	switch m.kind {
	case Lock, Commit:
		value(&m.lock.value, "value")
	case Ack:
		field(8, "flags")
		field(1, "bit 0: a value is locked, 1: decided")
		if m.lock.is {
			value(&m.lock.value, "value")
		}
	case Late:
		field(1, "bit 0: down the tree")
	default:
	}
	return text
}

// TestGoldenMessages: the bytes of messages are those in testdata/messages.
func TestGoldenMessages(t *testing.T) {
	var all []transcript.Listing
	for _, m := range goldens() {
		all = append(all, transcript.Listing{Name: m.kind.String(), Text: listing(&m), Read: func(t *testing.T, raw []byte) {
			got, err := read(raw, goldenSize)
			if diff := cmp.Diff(m, got, cmp.AllowUnexported(message{}, stamp{}, locked{}), cmp.Comparer(equal)); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			for n := range raw {
				if _, err := read(raw[:n], goldenSize); err == nil {
					t.Errorf("%d of %d bytes are read", n, len(raw))
				}
			}
		}})
	}
	transcript.Listings(t, "testdata/messages", all)
}

// FuzzMessage: what can be read has one form.
func FuzzMessage(f *testing.F) {
	for _, m := range goldens() {
		f.Add(m.bytes(goldenSize))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := read(b, goldenSize)
		if err != nil {
			return
		}
		if again := m.bytes(goldenSize); string(again) != string(b) {
			t.Fatalf("%x is read as %+v, which is %x", b, m, again)
		}
		if len(b) > MaxMessage(goldenSize) {
			t.Fatalf("%d bytes, more than %d", len(b), MaxMessage(goldenSize))
		}
	})
}

// FuzzStep: no input makes a member panic, decide twice, or fill memory.
func FuzzStep(f *testing.F) {
	f.Add([]byte{1, 0, 2, 3, 0, 7})
	f.Add([]byte{1, 0, 2, 4, 0, 0, 2, 1, 1, byte(Ping)})
	for _, m := range goldens() {
		b := m.bytes(goldenSize)
		f.Add(append([]byte{2, 1, byte(len(b))}, b...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := New(Config{Rank: 5, Size: goldenSize, SlowAfter: 1})
		if err != nil {
			t.Fatal(err)
		}
		last := uint32(0)
		for len(b) > 2 {
			in := Input{Kind: InputKind(b[0] % 5), Rank: uint32(b[1]), Flags: uint64(b[2])}
			n := min(int(b[2]), len(b)-3)
			if b = b[3:]; in.Kind == Message {
				in.Bytes, b = b[:n], b[n:]
			}
			var out Output
			c.Step(c.Deadline(), []Input{in}, &out)
			for _, d := range out.Decided {
				if d.Number != last+1 {
					t.Fatalf("decides %d after %d", d.Number, last)
				}
				last = d.Number
			}
			for _, s := range out.Sends {
				if len(s.Bytes) > MaxMessage(goldenSize) {
					t.Fatalf("a message of %d bytes", len(s.Bytes))
				}
			}
			for _, r := range []*round{c.last, c.next} {
				if r != nil && len(r.pending) > 9 {
					t.Fatalf("%d children", len(r.pending))
				}
			}
		}
	})
}
