package rail

import (
	"errors"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core"
)

// halfway is a receive of a side of which a fragment is being placed.
type halfway struct {
	*Peer
	out      Output
	other    *Peer
	receive  *RecvRequest
	message  []byte
	fragment []byte // FRAG
	second   []byte // the next
	envelope []byte // RNDV
}

func newHalfway(t *testing.T) *halfway {
	t.Helper()
	c := Config{Eager: 1, Fragment: 64}
	var peers [2]*Peer
	var outs [2]Output
	for i := range peers {
		p, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		for class := range classes {
			p.PathUp(0, class, 0, 0, 0, &outs[i])
		}
		peers[i] = p
	}
	h := &halfway{Peer: peers[1], other: peers[0], message: fill(128, 3)}
	h.receive = &RecvRequest{Tag: 5, Data: make([]byte, len(h.message))}
	h.Recv(h.receive, 0, &outs[1])
	peers[0].Send(&SendRequest{Tag: 5, Data: h.message}, 0, &outs[0])
	h.envelope = hand(t, &outs[0], h.Peer, &outs[1])[0]
	hand(t, &outs[1], peers[0], &outs[0])
	for i := range outs[0].Frames {
		f := &outs[0].Frames[i]
		b := append(append([]byte(nil), f.Head...), f.Body...)
		if h.fragment == nil {
			h.fragment = b
		} else {
			h.second = b
		}
	}
	if h.second == nil {
		t.Fatal("the message is not in two fragments")
	}
	return h
}

// hand hands on the frames of one side to the other, and returns them.
func hand(t *testing.T, from *Output, to *Peer, out *Output) (all [][]byte) {
	t.Helper()
	for i := range from.Frames {
		f := &from.Frames[i]
		b := append(append([]byte(nil), f.Head...), f.Body...)
		all = append(all, b)
		if err := to.Arrived(f.Path, f.Class, b, 0, out); err != nil {
			t.Fatal(err)
		}
	}
	from.Reset()
	return all
}

// place returns where the fragment is to lie.
func (h *halfway) place() []byte { return h.Place(Fragment, h.fragment[:BeginSize], len(h.fragment)) }

// TestPlace: a fragment goes where its receive has it, and counts when it was placed, once.
func TestPlace(t *testing.T) {
	h := newHalfway(t)
	body := h.place()
	if len(body) != 64 || &body[0] != &h.receive.Data[0] {
		t.Fatalf("the place has %d bytes, or is another", len(body))
	}
	copy(body, h.fragment[len(h.fragment)-64:])
	for range 2 { // a read that ends short is followed by another
		if again := h.place(); len(again) != 64 || &again[0] != &body[0] {
			t.Fatal("the place has changed")
		}
	}
	if err := h.Placed(h.fragment[:BeginSize], len(h.fragment), 0, &h.out); err != nil || len(h.out.Done) > 0 {
		t.Fatalf("%v, %v", err, h.out.Done)
	}
	if err := h.Arrived(0, Fragment, h.second, 0, &h.out); err != nil || len(h.out.Done) != 1 || h.out.Done[0].Err != nil {
		t.Fatalf("%v, %v", err, h.out.Done)
	}
	if !same(h.receive.Data, h.message) {
		t.Error("the message has changed")
	}
	if h.place() != nil {
		t.Error("there is a place in the memory of a receive that is done")
	}
	if err := h.Placed(h.fragment[:BeginSize], len(h.fragment), 0, &h.out); err != nil || h.Counters().Late != 1 {
		t.Errorf("%v, %+v", err, h.Counters())
	}
}

// TestNoPlace: whatever ends a receive, or begins it anew, ends the place of a fragment of which a
// part is there; what then comes of it changes nothing.
func TestNoPlace(t *testing.T) {
	now := core.Time(0)
	for name, end := range map[string]func(h *halfway){
		"cancelled":        func(h *halfway) { h.CancelRecv(h.receive, now, &h.out) },
		"its space ends":   func(h *halfway) { h.EndSpace(0, now, &h.out) },
		"the session ends": func(h *halfway) { h.Fail(errors.New("lost"), now, &h.out) },
		"refused": func(h *halfway) {
			f := head{kind: kindRefused, reason: withdrawn}
			f.words[fieldReceiving] = h.receive.id
			if err := h.Arrived(0, Message, f.append(nil), now, &h.out); err != nil {
				t.Fatal(err)
			}
		},
		"restarted": func(h *halfway) {
			var f head
			if _, err := f.parse(h.envelope); err != nil {
				t.Fatal(err)
			}
			f.kind = kindNotify
			f.words[fieldRestart], f.words[fieldReceiving] = 1, h.receive.id
			if err := h.Arrived(0, Message, f.append(nil), now, &h.out); err != nil {
				t.Fatal(err)
			}
		},
		"all has come another way": func(h *halfway) {
			for _, b := range [][]byte{h.fragment, h.second} {
				if err := h.Arrived(0, Fragment, b, now, &h.out); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHalfway(t)
			if h.place() == nil {
				t.Fatal("there is no place to begin with")
			}
			end(h)
			if h.place() != nil {
				t.Error("there is still a place")
			}
			got, done, late := h.receive.got, len(h.out.Done), h.Counters().Late
			if err := h.Arrived(0, Fragment, h.fragment[:BeginSize], now, &h.out); err != nil {
				t.Errorf("what is left of it: %v", err)
			}
			if h.receive.got != got || len(h.out.Done) != done || h.Counters().Late != late+1 {
				t.Errorf("what is left of it counts: %d bytes, %d requests done, %d late", h.receive.got, len(h.out.Done), h.Counters().Late)
			}
		})
	}
}

// TestPlaceOfOthers: what is no fragment of data, or malformed, has no place.
func TestPlaceOfOthers(t *testing.T) {
	h := newHalfway(t)
	begin := func(change func(*head)) []byte {
		var f head
		if _, err := f.parse(h.fragment); err != nil {
			t.Fatal(err)
		}
		change(&f)
		return append(f.append(nil), make([]byte, BeginSize)...)[:BeginSize]
	}
	whole := func(*head) {}
	for name, c := range map[string]struct {
		class Class
		begin []byte
		size  int
	}{
		"of class Message":     {Message, begin(whole), len(h.fragment)},
		"too short for a head": {Fragment, begin(whole)[:8], len(h.fragment)},
		"less than its begin":  {Fragment, begin(whole), BeginSize - 1},
		"without a body":       {Fragment, begin(whole)[:24], 24},
		"longer than the rest": {Fragment, begin(whole), 24 + 129},
		"behind the end":       {Fragment, begin(func(f *head) { f.words[fieldOffset] = 65 }), len(h.fragment)},
		"far behind the end":   {Fragment, begin(func(f *head) { f.words[fieldOffset] = ^uint64(0) }), len(h.fragment)},
		"of another kind":      {Fragment, begin(func(f *head) { f.kind = kindData }), len(h.fragment)},
		"of another restart":   {Fragment, begin(func(f *head) { f.words[fieldRestart]++ }), len(h.fragment)},
		"of another receive":   {Fragment, begin(func(f *head) { f.words[fieldReceiving] += 1 << 32 }), len(h.fragment)},
		"an envelope":          {Fragment, h.envelope[:BeginSize], len(h.fragment)},
		"no fragment at all":   {Fragment, make([]byte, BeginSize), len(h.fragment)},
	} {
		if h.Place(c.class, c.begin, c.size) != nil {
			t.Errorf("a fragment %s has a place", name)
		}
	}
	if h.place() == nil {
		t.Error("and the right one has none")
	}
}
