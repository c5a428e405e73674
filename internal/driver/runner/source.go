package runner

import (
	"errors"
	"fmt"
	"os"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
)

// Packets is the Source of a loop that owns a socket.
type Packets[In any] struct {
	conn    transport.Conn
	packets []transport.Packet
	input   func(*transport.Packet) In
}

// FromConn returns a Source that takes up to batch packets at once from conn,
// and makes an input of each. Input may refer to the packet's memory. The caller
// closes conn after the loop.
func FromConn[In any](conn transport.Conn, batch int, input func(*transport.Packet) In) *Packets[In] {
	return &Packets[In]{conn, make([]transport.Packet, batch), input}
}

// Receive implements Source.
func (p *Packets[In]) Receive(clock Clock, until core.Time, batch []In) ([]In, error) {
	n, err := p.conn.ReadBatch(p.packets, clock.At(until))
	if errors.Is(err, transport.ErrWoken) || errors.Is(err, os.ErrDeadlineExceeded) {
		return batch, nil
	}
	if err != nil {
		return batch, fmt.Errorf("runner: %w", err)
	}
	for i := range p.packets[:n] {
		batch = append(batch, p.input(&p.packets[i]))
	}
	return batch, nil
}

// Wake implements Source.
func (p *Packets[In]) Wake() { p.conn.Wake() }
