package udp

import (
	"net"
	"sync"
	"time"
)

// deadline is a moment at which a Read or a Write ends. Conn.mu guards it.
type deadline struct {
	at    time.Time // zero: none
	timer *time.Timer
}

func (d *deadline) isOver() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

// set sets the moment, at which who waits on cond looks again.
func (d *deadline) set(at time.Time, cond *sync.Cond) {
	d.at = at
	left := time.Until(at)
	switch {
	case at.IsZero():
		d.stop()
	case left <= 0:
		d.stop()
		cond.Broadcast()
	case d.timer == nil:
		d.timer = time.AfterFunc(left, func() {
			cond.L.Lock()
			defer cond.L.Unlock()
			cond.Broadcast()
		})
	default:
		d.timer.Reset(left)
	}
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadline(&c.readBy, t, &c.readable) }

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(&c.writeBy, t, &c.writable) }

func (c *Conn) setDeadline(d *deadline, t time.Time, cond *sync.Cond) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.fail("set deadline", net.ErrClosed)
	}
	d.set(t, cond)
	return nil
}
