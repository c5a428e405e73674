package udp

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/rudp"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
)

// Conn is a connection: a net.Conn.
type Conn struct {
	socket *socket
	id     rudp.ID
	remote netip.AddrPort

	writing sync.Mutex // held by Write, before mu

	mu                 sync.Mutex
	core               *rudp.Conn
	state              rudp.State // that the socket's tables are kept for
	closed             bool
	broken             error // the socket is
	readBy, writeBy    deadline
	readable, writable sync.Cond

	// Guarded by socket.mu.
	timer     core.Timer[*Conn]
	isDrained bool // all was acknowledged, and it is closed
	isOut     bool // not in the tables any more
}

var _ net.Conn = (*Conn)(nil)

// outputs are what steps bring about, with what is made of it.
var outputs = sync.Pool{New: func() any { return new(output) }}

type output struct {
	rudp.Output
	messages []transport.Message
}

// step steps the core, sends what comes out, and returns the news. c.mu is held.
func (c *Conn) step(now core.Time, datagrams [][]byte) rudp.News {
	out := outputs.Get().(*output)
	c.core.Step(now, datagrams, &out.Output)
	if len(out.Batches) > 0 {
		for i := range out.Batches {
			b := &out.Batches[i]
			out.messages = append(out.messages, transport.Message{To: c.remote, Head: b.Head, Body: b.Body, Size: b.Size})
		}
		_ = c.socket.conn.WriteBatch(out.messages) // the reader finds out that it is closed
		clear(out.messages)
		out.messages = out.messages[:0]
	}
	if out.News&(rudp.Readable|rudp.Opened|rudp.Over) != 0 {
		c.readable.Broadcast()
	}
	if out.News&(rudp.Writable|rudp.Over) != 0 {
		c.writable.Broadcast()
	}
	news := out.News
	out.Reset()
	outputs.Put(out)
	if state := c.core.State(); state != c.state { // also one that Close or Abort has brought about
		c.state = state
		c.socket.progress(c)
	}
	c.socket.arm(c)
	return news
}

// Read implements net.Conn. What has come before an error is read first.
func (c *Conn) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if c.closed {
			return 0, c.fail("read", net.ErrClosed)
		}
		if c.readBy.isOver() {
			return 0, c.fail("read", os.ErrDeadlineExceeded)
		}
		n, err := c.core.Read(b)
		if n > 0 && c.core.Deadline() == 0 { // it opens the window
			c.step(c.socket.clock.Now(), nil)
		}
		if n > 0 || err == io.EOF || len(b) == 0 && err == nil {
			return n, err
		}
		if err != nil {
			return 0, c.fail("read", err)
		}
		c.readable.Wait()
	}
}

// writeAtOnce are the bytes that are copied before they are sent.
const writeAtOnce = 256 << 10

// Write implements net.Conn. The bytes of several Writes at once are not mixed.
func (c *Conn) Write(b []byte) (n int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if c.writeBy.isOver() && !c.closed {
			return n, c.fail("write", os.ErrDeadlineExceeded)
		}
		k, err := c.try(b[n:])
		if n += k; err != nil || n == len(b) {
			return n, err
		}
		c.writable.Wait()
	}
}

// TryWrite writes as much of b as there is room for, and does not wait.
func (c *Conn) TryWrite(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.try(b)
}

func (c *Conn) try(b []byte) (n int, err error) {
	if c.closed {
		return 0, c.fail("write", net.ErrClosed)
	}
	for {
		k, err := c.core.Write(b[n:min(len(b), n+writeAtOnce)])
		if err != nil {
			return n, c.fail("write", err)
		}
		if k == 0 {
			return n, nil
		}
		n += k
		c.step(c.socket.clock.Now(), nil)
	}
}

// fail returns an error with the addresses of the connection.
func (c *Conn) fail(op string, err error) error {
	switch {
	case c.broken != nil && errors.Is(err, rudp.ErrAborted):
		err = c.broken
	case errors.Is(err, rudp.ErrClosed), errors.Is(err, rudp.ErrAborted):
		err = net.ErrClosed
	}
	return &net.OpError{Op: op, Net: "udp", Source: c.socket.addr(), Addr: c.RemoteAddr(), Err: err}
}

// CloseWrite ends what is sent: the peer reads io.EOF after it.
func (c *Conn) CloseWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.fail("close", net.ErrClosed)
	}
	c.core.CloseWrite()
	c.step(c.socket.clock.Now(), nil)
	c.writable.Broadcast()
	return nil
}

// Close implements net.Conn. What was written still arrives, unless the peer does not
// acknowledge it in time.
func (c *Conn) Close() error { return c.end((*rudp.Conn).Close) }

// Abort closes the connection at once, and what was written may be lost.
func (c *Conn) Abort() error {
	return c.end(func(r *rudp.Conn, _ core.Time) { r.Abort() })
}

func (c *Conn) end(how func(*rudp.Conn, core.Time)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.fail("close", net.ErrClosed)
	}
	c.closed = true
	c.readBy.stop()
	c.writeBy.stop()
	now := c.socket.clock.Now()
	how(c.core, now)
	c.step(now, nil)
	c.readable.Broadcast()
	c.writable.Broadcast()
	return nil
}

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return c.socket.addr() }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return net.UDPAddrFromAddrPort(c.remote) }

// Grow opens the whole window to a peer that is known now.
func (c *Conn) Grow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.core.Grow()
	c.step(c.socket.clock.Now(), nil)
}

// SetKeepAlive has a peer that sends nothing for d asked for a sign of life; 0: it is not.
func (c *Conn) SetKeepAlive(d time.Duration) {
	c.set(func(r *rudp.Conn) { r.SetKeepAlive(d) })
}

// SetLostAfter ends the connection when the peer acknowledges nothing for d, although it
// should.
func (c *Conn) SetLostAfter(d time.Duration) {
	c.set(func(r *rudp.Conn) { r.SetLostAfter(d) })
}

func (c *Conn) set(f func(*rudp.Conn)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c.core)
	c.socket.arm(c)
}

// Stats is how a connection does.
type Stats struct {
	UnacknowledgedSince time.Time     // when the oldest packet that is not acknowledged was sent; zero: all are
	AcknowledgedAge     time.Duration // since something was acknowledged, or the first was sent that is not
	HeardAge            time.Duration // since the peer has sent something
	RTT, LeastRTT       time.Duration // 0: not known
	Rate                float64       // bytes a second that were acknowledged, while the network was the limit; 0: never
	Window, InFlight    int           // bytes
	Unsent              int           // bytes that are written and were never sent
	Lost, Malformed     uint64        // packets
}

// Stats returns how the connection does.
func (c *Conn) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, now := c.core.Stats(), c.socket.clock.Now()
	return Stats{
		UnacknowledgedSince: c.socket.clock.At(s.UnacknowledgedSince),
		AcknowledgedAge:     now.Sub(s.AcknowledgedAt), HeardAge: now.Sub(s.HeardAt),
		RTT: s.RTT, LeastRTT: s.LeastRTT, Rate: s.Rate, Window: s.Window, InFlight: s.InFlight,
		Unsent: s.Unsent, Lost: s.Lost, Malformed: s.Malformed,
	}
}
