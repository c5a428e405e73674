package endpoint

import (
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// FuzzStep gives a member with an operation in flight any frames and packets,
// from neighbours and strangers. It ends with an error at most.
func FuzzStep(f *testing.F) {
	f.Add([]byte{0, 1, byte(wire.FrameGoodbye), 3, 2, byte(wire.FramePacket), 0})
	for _, m := range []interface{ Append([]byte) []byte }{
		&wire.Alarm{Epoch: 1}, &wire.Collect{Round: 1}, &wire.Report{Round: 1}, &wire.Decide{Round: 1, Epoch: 3},
		&wire.Fill{Round: 1}, &wire.Holding{Epoch: 2}, &wire.Fail{Kind: wire.FailDead}, &wire.Notice{Group: 2},
		&wire.Fail{Kind: wire.FailRevoked, Rank: 1},
	} {
		b := m.Append(nil)
		f.Add(append([]byte{0, byte(len(b))}, b...))
		f.Add(append([]byte{3, byte(len(b))}, b...))
	}
	h := wire.Header{Type: wire.Contribution, Flags: wire.Sink, Group: 5, Epoch: 1, Cookie: 9, Child: 1, Lowest: 3, Signature: wire.Signature{Collective: wire.Barrier}}
	packet := []byte{3, 1 + wire.HeaderSize, byte(wire.FramePacket)}
	packet = append(packet, make([]byte, wire.HeaderSize)...)
	h.Put(packet[3:])
	f.Add(packet)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := New(Config{Group: 5, Cookie: 9, Rank: 2, Size: 4, ChunkBytes: 64, Window: 2})
		if err != nil {
			t.Fatal(err)
		}
		var out Output
		c.Step(0, []Input{{Kind: Start, Operation: &session.Operation{Collective: wire.Barrier}}}, &out)
		ended := false
		for len(data) >= 2 {
			in := Input{Kind: Frame, Rank: uint32(data[0] & 3), From: memberAddr(1)}
			if data[0] > 128 {
				in.Kind = Packet
			}
			n := min(int(data[1]), len(data)-2)
			in.Bytes = data[2 : 2+n]
			data = data[2+n:]
			out.Reset()
			c.Step(0, []Input{in}, &out)
			if ended && (len(out.Completions) > 0 || out.Ended != nil) {
				t.Fatalf("after its end: %+v", out)
			}
			ended = ended || out.Ended != nil
			for i := range out.Messages {
				m := &out.Messages[i]
				if _, err := wire.ReadFrame(append(append([]byte(nil), m.Head...), m.Body...)); err != nil || m.To != 0 && m.To != 3 {
					t.Fatalf("it sends %x to %d: %v", m.Head, m.To, err)
				}
			}
		}
	})
}
