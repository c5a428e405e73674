package session

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/wire"
)

// FuzzStep gives a session any packets, those that are not admitted and, with
// the tree's own fields written into them, those that are. Its numbers stay in
// order, and what is sent is valid.
func FuzzStep(f *testing.F) {
	seed := newTrial()
	seed.do("enter epoch=2 window=2", "start allreduce 1 2 3 4", "start allreduce block 1 2 3")
	for _, line := range []string{"result 0 1 2 3 4", "want 0", "heard 1", "lost 0", "error 1", "result 1 5 6 7", "want 1"} {
		in := seed.packet(strings.Fields(line), map[string]string{})
		f.Add(in.Packet, true, true)
		in.Packet[19] = 0x83 // the exponent, where there may be one
		f.Add(in.Packet, true, false)
		f.Add(in.Packet, false, false)
	}
	f.Fuzz(func(t *testing.T, packet []byte, admitted, again bool) {
		trial := newTrial()
		trial.do("enter epoch=1 window=4", "start reduce:0 1 2 3 4", "start allreduce block 1 2 3", "start allreduce 1 2 3 4 5 6 7 8 9", "result 0")
		trial.do("freeze", "enter epoch=2 window=2 base=0 probes=1")
		if admitted && len(packet) >= wire.HeaderSize {
			packet = append([]byte(nil), packet...)
			binary.BigEndian.PutUint16(packet[2:], trial.link.Index)
			binary.BigEndian.PutUint32(packet[4:], trial.link.Group)
			binary.BigEndian.PutUint32(packet[8:], trial.link.Epoch)
			binary.BigEndian.PutUint64(packet[12:], uint64(trial.link.Cookie)<<16|uint64(packet[19]))
		}
		in := []Input{{From: parentAddr, Packet: packet}}
		if again {
			in = append(in, in[0])
		}
		s := trial.s
		trial.out.Reset()
		s.Step(1, in, &trial.out)
		for i := range trial.out.Sends {
			var h wire.Header
			send := &trial.out.Sends[i]
			if _, fault := h.Decode(append(send.Head[:], send.Body...)); fault != wire.NoFault {
				t.Errorf("it sends a packet with fault %v", fault)
			}
		}
		if wire.Newer(s.base, s.next) || wire.Newer(s.next, s.created) || wire.Newer(s.created, s.fresh) {
			t.Errorf("base %d, next %d, created %d, fresh %d", s.base, s.next, s.created, s.fresh)
		}
		if !s.frozen && wire.Newer(s.next, s.base+2) {
			t.Errorf("base %d, next %d in a window of 2", s.base, s.next)
		}
	})
}
