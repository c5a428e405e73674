package rudp

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// FuzzDatagrams gives a connection datagrams of somebody who knows its ID, parted by their
// lengths, while it has bytes to send: it may believe what is in the format, and keeps to
// its bounds whatever comes.
func FuzzDatagrams(f *testing.F) {
	framed := func(all ...[]byte) (b []byte) {
		for _, d := range all {
			b = append(binary.BigEndian.AppendUint16(b, uint16(len(d))), d...)
		}
		return b
	}
	s := newScripted()
	s.do("accept")
	f.Add(framed(s.data(flagCounts, "hello", false), s.data(flagCounts|flagFin, "world", true)))
	f.Add(framed(s.data(0, "", true), short(Reset, mine, resetSize)))
	f.Add(framed(short(Unknown, theirs, resetSize)))
	f.Add(framed(short(Connect, theirs, connectSize), short(Retry, mine, connectSize)))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := Call(shortConfig, 0, mine)
		accept := short(Accept, mine, acceptSize)
		(&opening{600, 4096, theirs}).put(accept, 16)
		var out Output
		now := core.Time(time.Second)
		c.Step(now, [][]byte{accept}, &out)
		room := make([]byte, 1000)
		for i := 0; len(b) >= 2; i++ {
			n := min(int(binary.BigEndian.Uint16(b)), len(b)-2)
			d := b[2 : 2+n]
			b = b[2+n:]
			if len(d) >= resetSize && i%2 == 0 { // as somebody who knows it
				d = append([]byte(nil), d...)
				id := mine
				if k := Kind(d[0] & 0xf); k == Connect || k == Unknown {
					id = theirs
				}
				d[0] = version | d[0]&0xf
				binary.BigEndian.PutUint64(d[8:], uint64(id))
			}
			_, _ = c.Write(room)
			out.Reset()
			now = now.Add(time.Duration(i) * time.Millisecond)
			c.Step(now, [][]byte{d}, &out)
			for i := range out.Batches {
				for _, sent := range apart(&out.Batches[i]) {
					if _, _, err := KindOf(sent); err != nil || len(sent) > c.datagram {
						t.Fatalf("it sends %x: %v", sent, err)
					}
				}
			}
			if i%3 == 0 {
				_, _ = c.Read(room)
			}
			if err := invariants(c, now); err != nil {
				t.Fatal(err)
			}
			if most := 8192; len(c.receive.buffer.b) > most || len(c.send.buffer.b) > most {
				t.Fatalf("buffers of %d and %d bytes", len(c.receive.buffer.b), len(c.send.buffer.b))
			}
		}
	})
}
