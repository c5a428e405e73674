//go:build !linux

package transport

import (
	"net"
	"net/netip"
	"time"
)

// maxDatagram is the largest payload of a UDP datagram.
const maxDatagram = 1<<16 - 1 - udpHeader

// batches reads and writes one datagram a system call, on systems without
// recvmmsg.
type batches struct {
	socket *net.UDPConn
	whole  []byte // a message's head and body in one piece
}

func newBatches(socket *net.UDPConn, _ bool) batches {
	return batches{socket: socket, whole: make([]byte, 0, maxDatagram)}
}

func (b *batches) read(packets []Packet, _ bool) (int, error) {
	p := &packets[0]
	n, from, err := b.socket.ReadFromUDPAddrPort(p.Buffer)
	if err != nil {
		return 0, err
	}
	p.N, p.From = n, netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	return 1, nil
}

// write sends messages, and counts them. Its only error is net.ErrClosed.
func (b *batches) write(messages []Message, t *tally) error {
	for i := range messages {
		m := &messages[i]
		b.whole = append(append(b.whole[:0], m.Head...), m.Body...)
		_, err := b.socket.WriteToUDPAddrPort(b.whole, m.To)
		if err := t.tried(messages[i:i+1], err); err != nil {
			return err
		}
	}
	return nil
}

// pollUntil is the deadline of a read that finds what is there already; a
// deadline in the past would find nothing.
func pollUntil() time.Time { return time.Now().Add(time.Millisecond) }

func nothingThere(error) bool { return false }

func enlarge(socket *net.UDPConn, size int) error { return socket.SetReadBuffer(size) }

func granted(*net.UDPConn) int { return 0 }

func overflowed(*net.UDPConn) (uint64, bool) { return 0, false }
