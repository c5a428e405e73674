package transport

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// ErrAddressInUse is returned by Memory.Listen for an address that has a Conn.
var ErrAddressInUse = errors.New("transport: address in use")

// memoryQueue is the datagrams that wait for one Conn of a Memory at most.
const memoryQueue = 4096

// firstEphemeral is the first port that a Memory gives to who asks for port 0.
const firstEphemeral = 49152

// Memory is a network in memory, whose Conns reach each other only. It loses
// nothing by itself, but a full queue drops, as a socket's buffer does. Its
// zero value is ready.
type Memory struct {
	mu    sync.Mutex
	conns map[netip.AddrPort]*memoryConn
	port  uint16 // last ephemeral port given
}

// Listen opens a Conn on local; port 0 takes a free port.
func (m *Memory) Listen(local netip.AddrPort) (Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conns == nil {
		m.conns = map[netip.AddrPort]*memoryConn{}
		m.port = firstEphemeral - 1
	}
	if local.Port() == 0 {
		m.port = max(m.port+1, firstEphemeral)
		local = netip.AddrPortFrom(local.Addr(), m.port)
	}
	if m.conns[local] != nil {
		return nil, fmt.Errorf("listening on %v: %w", local, ErrAddressInUse)
	}
	c := &memoryConn{network: m, local: local, stir: make(chan struct{}, 1)}
	m.conns[local] = c
	return c, nil
}

func (m *Memory) at(a netip.AddrPort) *memoryConn {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.conns[a]
}

func (m *Memory) remove(a netip.AddrPort) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.conns, a)
}

type datagram struct {
	from    netip.AddrPort
	payload []byte
}

// memoryConn is a Conn of a Memory.
type memoryConn struct {
	network *Memory
	local   netip.AddrPort
	stir    chan struct{} // something below changed
	tally   tally

	mu     sync.Mutex
	queue  []datagram
	woken  bool
	closed bool
}

func (c *memoryConn) LocalAddr() netip.AddrPort { return c.local }

func (c *memoryConn) ReadBatch(packets []Packet, until time.Time) (int, error) {
	var expired <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		expired = timer.C
	}
	for {
		if n, err := c.take(packets); n > 0 || err != nil {
			return n, err
		}
		if !until.IsZero() && !time.Now().Before(until) {
			return 0, os.ErrDeadlineExceeded
		}
		select {
		case <-c.stir:
		case <-expired:
		}
	}
}

// take reads what is there.
func (c *memoryConn) take(packets []Packet) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, net.ErrClosed
	}
	n, bytes := min(len(packets), len(c.queue)), 0
	for i := range packets[:n] {
		d := c.queue[i]
		packets[i] = Packet{Data: d.payload, From: d.from} // nobody else has it
		bytes += len(d.payload) + overhead(d.from.Addr())
	}
	if n > 0 {
		c.queue = c.queue[n:]
		c.tally.in(n, bytes)
		return n, nil
	}
	if c.woken {
		c.woken = false
		return 0, ErrWoken
	}
	return 0, nil
}

func (c *memoryConn) WriteBatch(messages []Message) error {
	if c.isClosed() {
		return net.ErrClosed
	}
	for i := range messages {
		m := &messages[i]
		to := c.network.at(m.To)
		m.each(func(head, body []byte) {
			c.tally.out(1, len(head)+len(body)+overhead(m.To.Addr()))
			if to != nil {
				to.deliver(datagram{c.local, append(append(make([]byte, 0, len(head)+len(body)), head...), body...)})
			}
		})
	}
	return nil
}

func (c *memoryConn) deliver(d datagram) {
	c.mu.Lock()
	if c.closed || len(c.queue) == memoryQueue {
		c.tally.overflowed.Add(1)
	} else {
		c.queue = append(c.queue, d)
	}
	c.mu.Unlock()
	c.signal()
}

func (c *memoryConn) Wake() {
	c.mu.Lock()
	c.woken = true
	c.mu.Unlock()
	c.signal()
}

func (c *memoryConn) signal() {
	select {
	case c.stir <- struct{}{}:
	default:
	}
}

func (c *memoryConn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func (c *memoryConn) Counters() Counters { return c.tally.counters() }

func (c *memoryConn) ReceiveBuffer() int { return 0 }

func (c *memoryConn) Close() error {
	c.mu.Lock()
	was := c.closed
	c.closed = true
	c.mu.Unlock()
	if was {
		return net.ErrClosed
	}
	c.network.remove(c.local)
	c.signal()
	return nil
}
