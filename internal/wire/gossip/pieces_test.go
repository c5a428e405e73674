package gossip

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func versions() *rapid.Generator[Version] {
	return rapid.Custom(func(t *rapid.T) Version {
		return Version{rapid.Uint64().Draw(t, "incarnation"), rapid.Uint32Max(MaxMinor).Draw(t, "minor")}
	})
}

func entries() *rapid.Generator[Entry] {
	return rapid.Custom(func(t *rapid.T) Entry {
		return Entry{Key(rapid.Uint64().Draw(t, "key")), rapid.SliceOfN(rapid.Byte(), 1, MaxID).Draw(t, "id"), versions().Draw(t, "version"), nil}
	})
}

// drawn draws an update with lists of any lengths.
func drawn(t *rapid.T) Packet {
	p := Packet{Type: rapid.SampledFrom([]Type{Update, Base, Births, Dispute}).Draw(t, "type")}
	n := func(what string) int { return rapid.IntRange(0, 60).Draw(t, what) }
	p.Answer = p.Type == Base
	signed := func() []byte {
		return rapid.SampledFrom([][]byte{nil, make([]byte, SignatureSize)}).Draw(t, "proof")
	}
	if p.Type == Births {
		for range n("births") {
			p.Births = append(p.Births, Birth{Key(rapid.Uint64().Draw(t, "key")), rapid.Uint64().Draw(t, "incarnation"), make([]byte, rapid.IntRange(1, 900).Draw(t, "record"))})
		}
	}
	if p.Type == Base || p.Type == Update {
		for range n("alives") {
			p.Alives = append(p.Alives, entries().Draw(t, "alive"))
		}
	}
	if p.Type == Update {
		for range n("leaves") {
			p.Leaves = append(p.Leaves, Departure{Reference{Key(rapid.Uint64().Draw(t, "key")), versions().Draw(t, "version")}, Exit{true, 9}, signed()})
		}
	}
	if p.Type == Update || p.Type == Base {
		for range n("suspicions") {
			p.Suspicions = append(p.Suspicions, Suspicion{1, Reference{2, versions().Draw(t, "version")}, signed()})
		}
	}
	if p.Type == Dispute {
		for range n("dead") {
			p.Dead = append(p.Dead, Reference{3, versions().Draw(t, "version")})
		}
	}
	return p
}

// TestPieces: the pieces of a packet fit, sealed in any way, and are together
// what it is: in the order leaves, alives, suspicions.
func TestPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		whole := Packet{Type: p.Type, From: p.From, Nonce: p.Nonce, Answer: p.Answer}
		last := 0
		pieces := p.Pieces(MaxDatagram)
		for i, piece := range pieces {
			if last := i == len(pieces)-1; piece.Answer != (p.Answer && last) {
				t.Fatalf("piece %d of %d asks for an answer: %v", i, len(pieces), piece.Answer)
			}
			b := piece.Append(nil)
			if len(b)+maxSeal > MaxDatagram {
				t.Fatalf("a piece of %d bytes", len(b))
			}
			var got Packet
			if err := got.Decode(b); err != nil {
				t.Fatal(err)
			}
			for order, n := range []int{len(got.Leaves), len(got.Alives), len(got.Suspicions)} {
				if n > 0 && order < last {
					t.Fatalf("list %d after list %d", order, last)
				} else if n > 0 {
					last = order
				}
			}
			whole.Leaves, whole.Alives = append(whole.Leaves, got.Leaves...), append(whole.Alives, got.Alives...)
			whole.Births = append(whole.Births, got.Births...)
			whole.Suspicions, whole.Dead = append(whole.Suspicions, got.Suspicions...), append(whole.Dead, got.Dead...)
		}
		if diff := cmp.Diff(p, whole, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("the pieces are another packet (-want +got):\n%s", diff)
		}
	})
}
