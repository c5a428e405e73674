package runner

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
)

// Timer is the Source of a loop that has no other: it waits for the deadline.
type Timer[In any] struct {
	timer *time.Timer
	woken chan struct{}
}

// NewTimer returns a Timer.
func NewTimer[In any]() *Timer[In] {
	return &Timer[In]{woken: make(chan struct{}, 1)}
}

// Receive implements Source; nothing comes from a Timer.
func (t *Timer[In]) Receive(clock Clock, until core.Time, batch []In) ([]In, error) {
	select {
	case <-t.woken:
		return batch, nil
	default:
	}
	if until == core.Never {
		<-t.woken
		return batch, nil
	}
	wait := until.Sub(clock.Now())
	if wait <= 0 {
		return batch, nil
	}
	if t.timer == nil {
		t.timer = time.NewTimer(wait)
	} else {
		t.timer.Reset(wait)
	}
	defer t.timer.Stop()
	select {
	case <-t.woken:
	case <-t.timer.C:
	}
	return batch, nil
}

// Wake implements Source.
func (t *Timer[In]) Wake() {
	select {
	case t.woken <- struct{}{}:
	default:
	}
}

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
