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

// Config tells how to open a socket. Its zero value works.
type Config struct {
	// ReceiveBuffer is the bytes asked of the kernel for datagrams that wait
	// to be read; 0 leaves the system's default. The kernel accounts for more
	// than the payload of each, and grants at most net.core.rmem_max to who is
	// not root: UDP.ReceiveBuffer tells what was granted.
	ReceiveBuffer int
}

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	if c.ReceiveBuffer < 0 {
		return fmt.Errorf("transport: receive buffer of %d bytes", c.ReceiveBuffer)
	}
	return nil
}

// UDP is a Conn over a UDP socket.
type UDP struct {
	socket  *net.UDPConn
	local   netip.AddrPort
	batches batches
	tally   tally

	// The read deadline is shared by the owner, who sets it, and by Wake, who
	// moves it into the past.
	mu      sync.Mutex
	woken   bool
	applied time.Time // deadline that the socket has
}

var _ Conn = (*UDP)(nil)

var past = time.Unix(1, 0)

// ListenUDP opens a UDP socket on local; port 0 takes a free port.
func ListenUDP(local netip.AddrPort, c Config) (*UDP, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	network := "udp6"
	if local.Addr().Unmap().Is4() {
		network, local = "udp4", netip.AddrPortFrom(local.Addr().Unmap(), local.Port())
	}
	socket, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(local))
	if err != nil {
		return nil, fmt.Errorf("transport: listening on %v: %w", local, err)
	}
	u := &UDP{socket: socket, batches: newBatches(socket, network == "udp4")}
	bound := socket.LocalAddr().(*net.UDPAddr).AddrPort()
	u.local = netip.AddrPortFrom(bound.Addr().Unmap(), bound.Port())
	if c.ReceiveBuffer > 0 {
		if err := enlarge(socket, c.ReceiveBuffer); err != nil {
			return nil, errors.Join(fmt.Errorf("transport: receive buffer of %v: %w", u.local, err), socket.Close())
		}
	}
	return u, nil
}

// LocalAddr returns the address that others send to.
func (u *UDP) LocalAddr() netip.AddrPort { return u.local }

// ReadBatch implements Conn.
func (u *UDP) ReadBatch(packets []Packet, until time.Time) (int, error) {
	var n int
	var err error
	if u.arm(until) {
		n, err = u.batches.read(packets, true)
	} else {
		n, err = u.poll(packets)
	}
	if err != nil {
		return 0, u.excuse(err)
	}
	bytes := 0
	for i := range packets[:n] {
		bytes += packets[i].N + overhead(packets[i].From.Addr())
	}
	u.tally.in(n, bytes)
	return n, nil
}

// arm sets the deadline of a read that waits. It reports false where there is
// nothing to wait for: the moment has passed, or Wake was called.
func (u *UDP) arm(until time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.woken || !until.IsZero() && !time.Now().Before(until) {
		return false
	}
	u.apply(until)
	return true
}

// poll reads what is there without waiting.
func (u *UDP) poll(packets []Packet) (int, error) {
	u.mu.Lock()
	u.apply(pollUntil())
	u.mu.Unlock()
	return u.batches.read(packets, false)
}

func (u *UDP) apply(deadline time.Time) {
	if u.applied.Equal(deadline) {
		return
	}
	// The only error is that the socket is closed, which the read tells, too.
	if u.socket.SetReadDeadline(deadline) == nil {
		u.applied = deadline
	}
}

// excuse turns the error of a read without datagrams into ReadBatch's.
func (u *UDP) excuse(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return net.ErrClosed
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) && !nothingThere(err) {
		return fmt.Errorf("transport: reading at %v: %w", u.local, err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.woken {
		u.woken = false
		return ErrWoken
	}
	return os.ErrDeadlineExceeded
}

// Wake implements Conn.
func (u *UDP) Wake() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.woken {
		u.woken = true
		u.apply(past)
	}
}

// WriteBatch implements Conn.
func (u *UDP) WriteBatch(messages []Message) error { return u.batches.write(messages, &u.tally) }

// Counters implements Conn.
func (u *UDP) Counters() Counters {
	if n, ok := overflowed(u.socket); ok {
		u.tally.overflowed.Store(n)
	}
	return u.tally.counters()
}

// ReceiveBuffer implements Conn.
func (u *UDP) ReceiveBuffer() int { return granted(u.socket) }

// Close implements Conn.
func (u *UDP) Close() error {
	u.Counters() // the socket's own count ends with it
	return u.socket.Close()
}
