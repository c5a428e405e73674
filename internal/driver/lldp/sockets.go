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
	// permitted returns why the process may open none: an error that wraps ErrPermission or
	// ErrUnsupported.
	permitted() error
	// claim waits until no other process of this machine takes part in LLDP as Tributary:
	// two would contradict each other. Before it waits it calls waiting with that process's
	// number. The caller releases the claim.
	claim(ctx context.Context, waiting func(pid int)) (release func(), err error)
}

// conn is a socket for frames.
type conn interface {
	// read waits for a frame. After an error other than net.ErrClosed others may come.
	read(b []byte) (arrival, error)
	write(frame []byte) error
	close()
}

// arrival is that of a frame.
type arrival struct {
	size  int
	waits time.Duration // that it has waited, since it came
}

const (
	headerSize = 14
	leastFrame = 60                              // bytes on Ethernet, without the checksum
	mostFrame  = headerSize + lldpdu.MaxSize + 1 // one more shows that there is more
)

// header appends that of a frame with an LLDPDU.
func header(b []byte, source [6]byte) []byte {
	b = append(append(b, lldpdu.Multicast[:]...), source[:]...)
	return append(b, lldpdu.EtherType>>8, lldpdu.EtherType&0xff)
}

// padded appends what a frame lacks.
func padded(b []byte) []byte {
	if len(b) < leastFrame {
		b = append(b, make([]byte, leastFrame-len(b))...)
	}
	return b
}

// source returns the sender's address of a frame.
func source(frame []byte) [6]byte { return [6]byte(frame[6:12]) }
