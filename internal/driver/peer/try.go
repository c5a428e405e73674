package peer

import (
	"net"

	"github.com/tributary-fabric/tributary/internal/driver/udp"
)

// tryWriter writes to a connection as far as that is possible without waiting.
type tryWriter interface {
	Write(b []byte) (n int, err error)
}

// newTryWriter returns nil for connections on which that cannot be done.
func newTryWriter(conn net.Conn) tryWriter {
	if c, ok := conn.(*udp.Conn); ok {
		return streamWriter{c}
	}
	return newKernelWriter(conn)
}

// streamWriter writes to a stream over UDP.
type streamWriter struct{ c *udp.Conn }

func (w streamWriter) Write(b []byte) (int, error) { return w.c.TryWrite(b) }
