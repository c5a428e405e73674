package gossip

import (
	"bytes"
	"testing"
)

// FuzzDecode: what is read is written again as it was, and nothing else is read.
func FuzzDecode(f *testing.F) {
	for _, g := range goldens() {
		f.Add(g.packet.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var p Packet
		if err := p.Decode(b); err != nil {
			return
		}
		if again := p.Append(nil); !bytes.Equal(again, b) {
			t.Errorf("%x is written again as %x", b, again)
		}
		for _, piece := range p.Pieces(MaxDatagram) {
			var q Packet
			if err := q.Decode(piece.Append(nil)); err != nil {
				t.Errorf("a piece of %x: %v", b, err)
			}
		}
	})
}

// FuzzOpen: nothing is opened that was not sealed.
func FuzzOpen(f *testing.F) {
	k := ring(f, true, secret(1))
	plain := (&Packet{Type: Nack}).Append(nil)
	f.Add(k.Seal(nil, plain))
	f.Add(k.Seal(nil, Pulse{}.Append(nil)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if TypeIs(b, Heartbeat) {
			return
		}
		if got, err := ring(t, true, secret(1)).Open(bytes.Clone(b)); err == nil && !bytes.Equal(got, plain) {
			t.Errorf("%x is opened: %x", b, got)
		}
	})
}
