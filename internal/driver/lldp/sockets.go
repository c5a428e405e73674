package lldp

import (
	"context"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/lldpdu"
)

// sockets are those of a machine.
type sockets interface {
	// port opens a socket for the LLDPDUs of the interface with this index.
	port(index int) (conn, error)
	// delays opens one for the messages of linkdelay of all interfaces.
	delays() (conn, error)
	// claim waits until no other process of this machine takes part in LLDP as Tributary:
	// two would contradict each other. Before it waits it calls waiting with that process's
	// number. The caller releases the claim.
	claim(ctx context.Context, waiting func(pid int)) (release func(), err error)
}

// conn is a socket for frames.
type conn interface {
	// read waits for a frame. After an error other than net.ErrClosed others may come.
	read(b []byte) (arrival, error)
	write(index int, frame []byte) error
	close()
}

// arrival is that of a frame.
type arrival struct {
	size  int
	index int           // of the interface
	waits time.Duration // that it has waited, since it came
}

const (
	headerSize = 14
	leastFrame = 60                              // bytes on Ethernet, without the checksum
	mostFrame  = headerSize + lldpdu.MaxSize + 1 // one more shows that there is more
)

// frame appends a frame with a payload.
func frame(b []byte, source [6]byte, etherType uint16, payload []byte) []byte {
	b = append(append(b, lldpdu.Multicast[:]...), source[:]...)
	b = append(append(b, byte(etherType>>8), byte(etherType)), payload...)
	if len(b) < leastFrame {
		b = append(b, make([]byte, leastFrame-len(b))...)
	}
	return b
}

// source returns the sender's address of a frame.
func source(frame []byte) [6]byte { return [6]byte(frame[6:12]) }
