package transport

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// UDP is a Conn over a UDP socket.
type UDP struct {
	local  netip.AddrPort
	engine engine
	tally  tally

	poll      time.Duration // for which a read looks at most before it sleeps
	look      time.Duration // for which the present one does: see adapt
	fixed     bool          // look does not change
	bulk      bool          // nobody waits for the next datagram: see SetBulk
	sleeps    bool          // it sleeps in the kernel at first
	busy      bool          // the last read was no empty poll
	attentive bool          // the present one may poll: see vigils
	stuck     bool          // looking took so long that others have the processor: see tries
	since     time.Duration // after opened, when the first read began that was

	opened  time.Time
	without Features

	woken, closed atomic.Bool

	mu     sync.Mutex
	asleep bool // the owner is: wake ends that
}

var _ Conn = (*UDP)(nil)

// engine moves the datagrams of a socket, and counts them. Its methods are the
// owner's, but for wake, enlarge, overflowed, granted and close.
type engine interface {
	features() Features

	// take takes what is there, without waiting: 0 if that is nothing. Whoever
	// cannot look without waiting looks only if this is the last chance.
	take(packets []Packet, last bool) (int, error)

	// arm prepares pollSleep or park, which wait for a datagram: in a system call for
	// d, or in the runtime's poller until a moment. After arm, wake ends them,
	// also if it comes first.
	arm(until time.Time)
	pollSleep(d time.Duration) error
	park() error
	wake()

	// write sends messages. Its only error is net.ErrClosed.
	write(messages []Message) error

	// sendFrom has messages sent from an address, and over the interface of a number; zero:
	// as routes have it. It reports whether it can.
	sendFrom(source netip.Addr, device int) bool

	enlarge(bytes int) error // the receive buffer
	overflowed() (count uint64, isKnown bool)
	granted() int // bytes of the receive buffer; 0: unknown
	close() error
}

// ListenUDP opens a UDP socket on local; port 0 takes a free port.
func ListenUDP(local netip.AddrPort, c Config) (*UDP, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	u := &UDP{opened: time.Now(), since: -sleepFor}
	local = netip.AddrPortFrom(local.Addr().Unmap(), local.Port())
	var err error
	if u.engine, u.local, err = open(local, c, &u.tally); err != nil {
		return nil, fmt.Errorf("transport: listening on %v: %w", local, err)
	}
	can := u.engine.features() &^ c.Without
	u.sleeps = can&Sleeping != 0
	if can&Polling != 0 {
		if u.poll = c.Poll; u.poll == 0 {
			u.poll = DefaultPoll
		}
		u.look = u.poll
	}
	u.without, u.fixed = c.Without, can&Adapting == 0
	return u, nil
}

// LocalAddr returns the address that others send to.
func (u *UDP) LocalAddr() netip.AddrPort { return u.local }

// Features returns what is in use. Segmentation may go out of use when a
// device refuses it.
func (u *UDP) Features() Features {
	return u.engine.features() &^ (u.without & (Polling | Sleeping | GROBatches | Adapting))
}

// ReadBatch implements Conn.
func (u *UDP) ReadBatch(packets []Packet, until time.Time) (int, error) {
	n, err := u.engine.take(packets, false)
	if n == 0 && err == nil {
		n, err = u.await(packets, until)
	}
	if err == nil {
		u.busy = true
		return n, nil
	}
	if errors.Is(err, net.ErrClosed) {
		return 0, net.ErrClosed
	}
	if err == ErrWoken || err == os.ErrDeadlineExceeded {
		return 0, err
	}
	return 0, fmt.Errorf("transport: reading at %v: %w", u.local, err)
}

// await is ReadBatch when nothing is there yet.
func (u *UDP) await(packets []Packet, until time.Time) (int, error) {
	deadline := time.Duration(math.MaxInt64)
	if !until.IsZero() {
		deadline = until.Sub(u.opened)
	}
	defer u.relax()
	for now := time.Since(u.opened); ; {
		u.attend()
		if u.busy {
			u.busy, u.since = false, now
		}
		switch {
		case u.closed.Load():
			return 0, net.ErrClosed
		case u.woken.Load():
			return u.lastLook(packets, ErrWoken)
		case now >= deadline:
			return u.lastLook(packets, os.ErrDeadlineExceeded)
		}
		n, err := u.wait(packets, &now, deadline, until)
		if n > 0 || err != nil {
			u.adapt(now)
			return n, err
		}
	}
}

// wait looks a few times, or sleeps until there is something, until the
// deadline, or until Wake, and takes what is there then. It moves now on. Who is
// not attentive sleeps in the runtime's poller.
func (u *UDP) wait(packets []Packet, now *time.Duration, deadline time.Duration, until time.Time) (n int, err error) {
	begun := *now
	idle := begun - u.since
	if u.attentive && idle < u.patience() {
		n, err = u.watch(packets)
		*now = time.Since(u.opened)
		u.stuck = *now-begun > stall
		return n, err
	}
	d := time.Duration(0)
	if u.attentive && u.sleeps && idle < sleepFor {
		d = min(sleepFor-idle, deadline-begun)
	}
	u.tally.waitCalls.Add(1)
	err = u.sleep(until, d)
	if *now = time.Since(u.opened); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, err
	}
	return u.engine.take(packets, false)
}

// vigils are the reads of this process that poll, or sleep in a system call, and
// vigilsMax is how many may at once. For all others the Go runtime's poller waits:
// a thousand sockets that each kept a thread would take the processors from the
// few that have something to do.
var (
	vigils    atomic.Int64
	vigilsMax = 4 * int64(runtime.NumCPU())
)

// attend makes this read one of these, if there is room.
func (u *UDP) attend() {
	if u.attentive || u.poll == 0 && !u.sleeps || vigils.Load() >= vigilsMax {
		return
	}
	if u.attentive = vigils.Add(1) <= vigilsMax; !u.attentive {
		vigils.Add(-1)
	}
}

func (u *UDP) relax() {
	if u.attentive {
		u.attentive = false
		vigils.Add(-1)
	}
}

// tries is how often a read looks before it reads the clock. Whoever shares a
// processor with others that look finds little of what a look needs in its
// caches each time. Where others do not give it back soon, stall, a read looks
// once: it would be late for its deadline.
const (
	tries = 4
	stall = time.Millisecond
)

// watch looks a few times, and offers the processor before each.
func (u *UDP) watch(packets []Packet) (n int, err error) {
	looks := tries
	if u.stuck {
		looks = 1
	}
	for range looks {
		if u.woken.Load() || u.closed.Load() {
			break
		}
		u.tally.waitCalls.Add(1)
		yield()
		if n, err = u.engine.take(packets, false); n > 0 || err != nil {
			break
		}
	}
	return n, err
}

// patience returns for how long a read looks before it sleeps.
func (u *UDP) patience() time.Duration {
	if u.bulk && !u.fixed {
		return u.poll / shortest
	}
	return u.look
}

// adapt has the next reads look for as long as may be worth it, now that a
// datagram was waited for: where they come less often than within the longest
// look, as on a link that is the limit, looking only keeps a processor busy.
// (Hypervisors that poll before they halt adapt in the same way.)
func (u *UDP) adapt(now time.Duration) {
	switch {
	case u.fixed:
	case now-u.since < u.poll:
		u.look = u.poll
	default:
		u.look = max(u.look/2, u.poll/shortest)
	}
}

// SetSource implements Conn.
func (u *UDP) SetSource(source netip.Addr, device int) bool {
	if source = source.Unmap(); source.IsValid() && source.Is4() != u.local.Addr().Is4() {
		return false
	}
	return u.engine.sendFrom(source, device)
}

// SetBulk says whether the owner, who alone calls it, need not have the next
// datagram at once, since it is one of many that come as fast as a link brings
// them. One that adapts then looks for the shortest time.
func (u *UDP) SetBulk(is bool) { u.bulk = is }

// shortest is the part of the longest look that the shortest one is.
const shortest = 16

// lastLook takes what has come meanwhile. If that is nothing, why is the reason
// why the read ends.
func (u *UDP) lastLook(packets []Packet, why error) (int, error) {
	n, err := u.engine.take(packets, true)
	if n > 0 || err != nil {
		return n, err
	}
	if why == ErrWoken {
		u.woken.Store(false)
		u.busy = true
	}
	return 0, why
}

// sleep waits for a datagram or for Wake: in a system call for d or, if that is
// 0, in the runtime's poller until the moment until.
func (u *UDP) sleep(until time.Time, d time.Duration) error {
	u.mu.Lock()
	if u.woken.Load() || u.closed.Load() { // too early to end this sleep
		u.mu.Unlock()
		return nil
	}
	u.asleep = true
	u.engine.arm(until)
	u.mu.Unlock()
	var err error
	if d > 0 {
		err = u.engine.pollSleep(d)
	} else {
		err = u.engine.park()
	}
	u.mu.Lock()
	u.asleep = false
	u.mu.Unlock()
	return err
}

// Wake implements Conn.
func (u *UDP) Wake() {
	if !u.woken.Swap(true) {
		u.wake()
	}
}

// wake ends the owner's sleep.
func (u *UDP) wake() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.asleep {
		u.engine.wake()
	}
}

// WriteBatch implements Conn.
func (u *UDP) WriteBatch(messages []Message) error { return u.engine.write(messages) }

// Counters implements Conn.
func (u *UDP) Counters() Counters {
	if n, ok := u.engine.overflowed(); ok {
		u.tally.overflowed.Store(n)
	}
	return u.tally.counters()
}

// ReceiveBuffer implements Conn.
func (u *UDP) ReceiveBuffer() int { return u.engine.granted() }

// Enlarge asks the kernel for a receive buffer of so many bytes, as
// Config.ReceiveBuffer does. It may be called by anybody.
func (u *UDP) Enlarge(bytes int) error {
	if err := u.engine.enlarge(bytes); err != nil {
		return fmt.Errorf("transport: receive buffer of %v: %w", u.local, err)
	}
	return nil
}

// Close implements Conn.
func (u *UDP) Close() error {
	if u.closed.Swap(true) {
		return net.ErrClosed
	}
	u.Counters() // the socket's own count ends with it
	u.wake()
	return u.engine.close()
}
