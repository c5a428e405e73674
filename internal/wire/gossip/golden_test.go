package gossip

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
)

type golden struct {
	name, says string
	packet     Packet
}

// node returns an entry for a node of the test.
func node(n int, v Version) Entry {
	id := ID(fmt.Sprintf("n%d@10.0.0.%d:7946", n, n))
	return Entry{Key: id.Key(), ID: []byte(id), Version: v}
}

func reference(n int, v Version) Reference { return Reference{node(n, v).Key, v} }

var signed = []byte(strings.Repeat("s", SignatureSize))

func proven(e Entry) Entry {
	e.Proof = signed
	return e
}

// goldens are a packet of each type.
func goldens() []golden {
	v1, v2 := Version{300, 1}, Version{300, 2}
	old := Version{299, 7}
	return []golden{
		{"hello", "n1 has dialled n2, which it needs as its successor", Packet{Type: Hello, From: node(1, v1), Target: node(2, v1).Key, Need: Ring, Tag: 0xa1a2a3a4}},
		{"welcome", "n2 accepts", Packet{Type: Welcome, From: node(2, v1), Tag: 0xb1b2b3b4}},
		{"refuse", "n2 holds the caller dead at this version", Packet{Type: Refuse, Reason: Dead, About: Reference{Version: v1}}},
		{"refuse-full", "n2 has random neighbours enough", Packet{Type: Refuse, Reason: Full}},
		{"base", "a view of two, and a suspicion; the other's view is asked for", Packet{
			Type: Base, Answer: true, Alives: []Entry{node(1, v1), node(2, v2)}, Suspicions: []Suspicion{{node(1, v1).Key, reference(2, v2), nil}},
		}},
		{"update", "n3 left with code 3, n4 without, n1 is alive, n2 is suspected", Packet{
			Type: Update, Leaves: []Departure{{reference(3, old), Exit{true, 3}, nil}, {reference(4, v1), Exit{}, nil}},
			Alives: []Entry{node(1, v2)}, Suspicions: []Suspicion{{node(1, v1).Key, reference(2, v1), nil}},
		}},
		{"needs", "the link is a random neighbour's, too", Packet{Type: Needs, Need: Ring | Random}},
		{"watchers", "n1 and n2 watch the sender", Packet{Type: Watchers, Watchers: []Key{node(1, v1).Key, node(2, v1).Key}}},
		{"dispute", "n2 is dead for the sender", Packet{Type: Dispute, Dead: []Reference{reference(2, v2)}}},
		{"goodbye", "the link is closed on purpose", Packet{Type: Goodbye}},
		{"probe", "is anybody there? The sender holds nobody dead", Packet{Type: Probe, From: node(1, v1), Target: node(2, v1).Key, Nonce: 7}},
		{"echo", "n2 is", Packet{Type: Echo, About: reference(2, v2), Nonce: 7}},
		{"relay", "ask n2, which is dead for others at this version", Packet{Type: Relay, From: node(1, v1), About: reference(2, v1), Nonce: 8}},
		{"nack", "n1 cannot reach it either", Packet{Type: Nack, About: reference(1, v1), Nonce: 8}},
		{"discovery-request", "n1 boots", Packet{Type: DiscoveryRequest, From: node(1, v1), Nonce: 9, Boot: true}},
		{"discovery-request-stealth", "and is not to be notified of", Packet{Type: DiscoveryRequest, From: node(1, v1), Nonce: 9, Boot: true, Stealth: true}},
		{"discovery-reply", "n2 knows of 300 nodes, and n1 is dead for it at this version", Packet{
			Type: DiscoveryReply, From: node(2, v1), Nonce: 9, Boot: true, About: Reference{Version: old}, Size: 300,
		}},
		{"discovery-reply-namesake", "n2 proves itself, and knows n4 by the name of n1", Packet{
			Type: DiscoveryReply, From: node(2, v1), Nonce: 9, Record: []byte("birth"), Size: 300, Alives: []Entry{node(4, v2)},
		}},
		{"welcome-proven", "n2 accepts, and proves its life and its minor", Packet{Type: Welcome, From: proven(node(2, v2)), Tag: 0xb1b2b3b4, Record: []byte("birth")}},
		{"update-proven", "n3 left, n1 is alive at a later minor, n2 is suspected, each with a signature", Packet{
			Type: Update, Leaves: []Departure{{reference(3, old), Exit{true, 3}, signed}},
			Alives: []Entry{proven(node(1, v2))}, Suspicions: []Suspicion{{node(1, v1).Key, reference(2, v1), signed}},
		}},
		{"nack-proven", "n1 cannot reach it either, and signs that", Packet{Type: Nack, About: reference(1, v1), Nonce: 8, Proof: signed}},
		{"wants", "prove these lives", Packet{Type: Wants, Dead: []Reference{{node(1, v1).Key, Version{Incarnation: 300}}}}},
		{"births", "the record of one", Packet{Type: Births, Births: []Birth{{node(1, v1).Key, 300, []byte("birth")}}}},
		{"attributes", "a frame of the attributes", Packet{Type: Attributes, Body: []byte{1, 2, 3}}},
		{"hierarchy", "a frame of the hierarchy", Packet{Type: Hierarchy, Body: []byte{4}}},
		{"limits", "every number as large as it can be", Packet{
			Type: Relay, From: Entry{^Key(0), []byte(strings.Repeat("x", MaxID)), Version{^uint64(0), MaxMinor}, nil},
			About: Reference{^Key(0), Version{^uint64(0), MaxMinor}}, Nonce: ^uint32(0),
		}},
	}
}

func listing(says string, m []byte) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", says)
	for at := 0; at < len(m); at += 8 {
		row := m[at:min(at+8, len(m))]
		fmt.Fprintf(&b, "%4d  %-16x  %s\n", at, row, printable(row))
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

// TestGolden: each golden packet is written and read as its file says.
func TestGolden(t *testing.T) {
	var listings []transcript.Listing
	seen := map[Type]bool{Heartbeat: true}
	for _, g := range goldens() {
		seen[g.packet.Type] = true
		listings = append(listings, transcript.Listing{Name: g.name, Text: listing(g.says, g.packet.Append(nil)), Read: func(t *testing.T, raw []byte) {
			var got Packet
			if err := got.Decode(raw); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(g.packet, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("read as another (-want +got):\n%s", diff)
			}
		}})
	}
	pulse := Pulse{0xa1a2a3a4, 5, 4, 0xbeef}
	listings = append(listings, transcript.Listing{Name: "heartbeat", Text: listing("the fifth to this neighbour, whose next turn comes in four", pulse.Append(nil)), Read: func(t *testing.T, raw []byte) {
		if got, err := DecodePulse(raw); err != nil || got != pulse {
			t.Errorf("read as %+v, %v", got, err)
		}
	}})
	for ty := range Type(128) {
		if _, ok := layout(ty); ok != seen[ty] && ty != Heartbeat {
			t.Errorf("type %d has a layout: %v; a golden packet: %v", ty, ok, seen[ty])
		}
	}
	transcript.Listings(t, filepath.Join("testdata", "golden"), listings)
}

// TestDecodeRefuses: what Append would not write is not read.
func TestDecodeRefuses(t *testing.T) {
	valid := (&Packet{Type: Needs, Need: Ring}).Append(nil)
	nack := (&Packet{Type: Nack, Nonce: 7}).Append(nil)
	echo := (&Packet{Type: Echo, About: reference(1, Version{1, 1})}).Append(nil)
	long := append([]byte(nil), echo[:10]...)
	long = append(append(long, 0x81, 0x00), echo[11:]...) // 1 in two bytes
	for name, b := range map[string][]byte{
		"nothing": nil, "half a header": valid[:1], "another version": {(version - 1) << 4, byte(Goodbye)},
		"no such type": {version << 4, 99}, "a heartbeat": Pulse{}.Append(nil), "a sealed packet": {version<<4 | 1, byte(Goodbye)},
		"an encrypted packet": {version << 4, byte(Goodbye) | encrypted},
		"too short":           nack[:len(nack)-1], "too long": append(slices.Clip(nack), 0), "an unknown need": {version << 4, byte(Needs), 4},
		"no reason": {version << 4, byte(Refuse), 0, 0, 0}, "an unknown reason": {version << 4, byte(Refuse), 9, 0, 0},
		"a long varint": long, "more than there is": {version << 4, byte(Watchers), 0xff, 0xff, 0xff, 0xff, 0x0f},
		"a flag that the type has not": {version << 4, byte(Base), 1, 0, 0},
	} {
		var p Packet
		if err := p.Decode(b); err == nil {
			t.Errorf("%s (%x) is read as %+v", name, b, p)
		}
	}
}
