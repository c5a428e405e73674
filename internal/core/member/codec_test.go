package member

import (
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

var signed = &Signature{1}

// messages are one of each type that a core sends.
func messages(dir *Directory) []*Message {
	a, b, c := dir.Add(idOf("a")), dir.Add(idOf("b")), dir.Add(idOf("c"))
	at := func(i Index) Entry { return Entry{i, ver(7, 2), nil} }
	none := Entry{Node: Nobody}
	with := func(m Message) *Message {
		if m.From == (Entry{}) {
			m.From = none
		}
		if m.About == (Entry{}) {
			m.About = none
		}
		return &m
	}
	return []*Message{
		with(Message{Type: gossip.Hello, From: at(a), Target: dir.Key(b), Need: gossip.Ring, Tag: 9}),
		with(Message{Type: gossip.Welcome, From: at(a), Need: gossip.Random, Tag: 9}),
		with(Message{Type: gossip.Refuse, Reason: gossip.Dead, About: Entry{Nobody, ver(7, 1), nil}}),
		with(Message{Type: gossip.Base, Answer: true, Alives: []Entry{at(a), at(b)}, Suspicions: []Suspicion{{dir.Key(a), b, ver(7, 1), nil}}}),
		with(Message{Type: gossip.Update, Leaves: []Departure{{c, ver(1, 1), gossip.Exit{Given: true, Code: 4}, nil}}, Alives: []Entry{at(a)}, Suspicions: []Suspicion{{12345, b, ver(7, 1), nil}}}),
		with(Message{Type: gossip.Needs, Need: gossip.Ring}),
		with(Message{Type: gossip.Watchers, Watchers: []Index{b, c}}),
		with(Message{Type: gossip.Dispute, Alives: []Entry{at(b)}}),
		with(Message{Type: gossip.Goodbye}),
		with(Message{Type: gossip.Probe, From: at(a), Target: dir.Key(b), Nonce: 3, About: Entry{Nobody, ver(7, 1), nil}}),
		with(Message{Type: gossip.Echo, From: at(b), Nonce: 3, About: Entry{Nobody, ver(7, 2), nil}}),
		with(Message{Type: gossip.Relay, From: at(a), About: at(c), Nonce: 3}),
		with(Message{Type: gossip.Nack, From: at(b), Nonce: 3, About: Entry{Nobody, ver(7, 2), nil}}),
		with(Message{Type: gossip.DiscoveryRequest, From: at(a), Nonce: 3, Boot: true, Stealth: true}),
		with(Message{Type: gossip.DiscoveryReply, From: at(a), Nonce: 3, About: Entry{Node: Nobody, Version: ver(7, 2)}, Size: 17}),
		with(Message{Type: gossip.Wants, Alives: []Entry{{Node: b, Version: Version{Incarnation: 7}}}}),
		with(Message{Type: gossip.Births, Births: []Birth{{b, 7, []byte("record")}}}),
		with(Message{Type: gossip.Update, Leaves: []Departure{{c, ver(1, 1), gossip.Exit{}, signed}}, Alives: []Entry{{a, ver(7, 2), signed}}, Suspicions: []Suspicion{{12345, b, ver(7, 1), signed}}}),
	}
}

// TestCodec: a message of every type comes through as it was, also where it
// travels in pieces.
func TestCodec(t *testing.T) {
	dir := NewDirectory()
	codec, other := NewCodec(dir), NewCodec(dir)
	for _, m := range messages(dir) {
		pieces := codec.Pieces(m, gossip.MaxDatagram)
		if len(pieces) != 1 {
			t.Fatalf("%v: %d pieces", m.Type, len(pieces))
		}
		got, err := other.Message(pieces[0].Append(nil))
		if err != nil {
			t.Fatalf("%v: %v", m.Type, err)
		}
		if diff := cmp.Diff(m, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%v comes through as another (-want +got):\n%s", m.Type, diff)
		}
	}
	large := &Message{Type: gossip.Base}
	for i := range 2048 {
		large.Alives = append(large.Alives, Entry{dir.Add(gossip.ID(fmt.Sprintf("n%d@10.0.0.1:1", i))), ver(1, 1), nil})
	}
	n := 0
	for _, p := range codec.Pieces(large, gossip.MaxDatagram) {
		m, err := other.Message(p.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		n += len(m.Alives)
	}
	if n != 2048 {
		t.Errorf("%d of 2048 entries come through", n)
	}
}

// TestCodecChecksIDs: a new ID must be valid and have its key, a known one must
// be the same; news of nobody known is left out.
func TestCodecChecksIDs(t *testing.T) {
	dir := NewDirectory()
	a := dir.Add(idOf("a"))
	dir.Hold(a)
	codec := NewCodec(dir)
	for what, e := range map[string]gossip.Entry{
		"another key":      {Key: idOf("b").Key() + 1, ID: []byte(idOf("b"))},
		"a known key":      {Key: idOf("a").Key(), ID: []byte(idOf("b"))},
		"not an ID":        {Key: gossip.ID("b").Key(), ID: []byte("b")},
		"an anonymous one": {Key: gossip.ID("@10.0.0.1:1").Key(), ID: []byte("@10.0.0.1:1")},
	} {
		p := gossip.Packet{Type: gossip.Update, Alives: []gossip.Entry{e}}
		if m, err := codec.Message(p.Append(nil)); !errors.Is(err, gossip.ErrMalformed) {
			t.Errorf("%s: %+v, %v; want ErrMalformed", what, m, err)
		}
	}
	placeholder := dir.Add("@10.0.0.9:1")
	dir.Hold(placeholder)
	anonymous := gossip.Packet{Type: gossip.Update, Alives: []gossip.Entry{{Key: dir.Key(placeholder), ID: []byte("@10.0.0.9:1")}}}
	if m, err := codec.Message(anonymous.Append(nil)); !errors.Is(err, gossip.ErrMalformed) {
		t.Errorf("a placeholder of the bootstrap set is taken for a node: %+v, %v", m, err)
	}
	p := gossip.Packet{Type: gossip.Update, Leaves: []gossip.Departure{{Reference: gossip.Reference{Key: 1}}, {Reference: gossip.Reference{Key: idOf("a").Key()}}}}
	if m, err := codec.Message(p.Append(nil)); err != nil || len(m.Leaves) != 1 || m.Leaves[0].Node != a {
		t.Errorf("leaves of a stranger and of a: %+v, %v", m, err)
	}
	dir.Sweep()
	if n := len(dir.free); n > 1 {
		t.Errorf("%d numbers were used up by refused IDs", n)
	}
}

// TestStrangersAreAnswered: who asks and is not held by the core can be answered
// until the driver sweeps. It is not probed for: anybody may have named its address.
func TestStrangersAreAnswered(t *testing.T) {
	for _, ask := range []gossip.Packet{
		{Type: gossip.Probe, Target: idOf("a").Key(), Nonce: 1}, {Type: gossip.DiscoveryRequest, Nonce: 1, Boot: true, Stealth: true},
		{Type: gossip.Relay, Nonce: 1, About: gossip.Reference{Key: idOf("c").Key()}},
	} {
		dir := NewDirectory()
		cfg := Config{Settings: quiet(), Self: idOf("a"), Incarnation: 1, Bootstrap: []gossip.ID{idOf("c")}}
		c, err := New(cfg, dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		ask.From = gossip.Entry{Key: idOf("b").Key(), ID: []byte(idOf("b")), Version: ver(1, 1)}
		m, err := NewCodec(dir).Message(ask.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		var out Output
		answered := false
		c.Step(0, []Input{{Kind: Datagram, Message: m}}, &out)
		for range 8 {
			for _, p := range out.Packets {
				answered = answered || dir.ID(p.To) == idOf("b")
			}
			dir.Sweep()
			out.Reset()
			c.Step(c.Deadline(), nil, &out)
		}
		if want := ask.Type != gossip.Relay; answered != want {
			t.Errorf("a stranger's %v is answered: %v", ask.Type, answered)
		}
	}
}

// TestNodeSize: what a core keeps of each ID is 32 bytes, as its comment says;
// RunMemory of internal/sim/zone weighs whole cores.
func TestNodeSize(t *testing.T) {
	if n := unsafe.Sizeof(node{}); n > 32 {
		t.Errorf("a node takes %d bytes", n)
	}
}

// BenchmarkOpen is what a message costs its receiver: opening its seal, decoding
// it and finding its nodes. The simulation charges twice that.
//
//	go test -bench Open ./internal/core/member
func BenchmarkOpen(b *testing.B) {
	ring, err := gossip.NewKeyring(true, gossip.SharedKey{Number: 1})
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{0, 1, 30, 1500} {
		dir := NewDirectory()
		m := &Message{Type: gossip.Update}
		for i := range n {
			m.Alives = append(m.Alives, Entry{dir.Add(gossip.ID(fmt.Sprintf("node-%04d@10.0.0.1:7946", i))), ver(1790000000000000000, 3), nil})
		}
		codec := NewCodec(dir)
		sealed := ring.Seal(nil, codec.Pieces(m, gossip.MaxFrame)[0].Append(nil))
		packet := make([]byte, len(sealed))
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				copy(packet, sealed)
				plain, err := ring.Open(packet)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := codec.Message(plain); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
