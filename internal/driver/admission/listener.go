package admission

import (
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Limits are of the connections that stand at once.
type Limits struct {
	All      int // in all
	OfSource int // of one Source; of this machine itself as many as in all
	// Strangers are of All those for which Admit was not called yet: newcomers take their
	// places. 0: Admit is not called, and newcomers are closed.
	Strangers int
}

// logEvery is how often connections that were closed are logged.
const logEvery = time.Minute

// Listener closes connections beyond its limits as soon as they are there: strangers, and where
// there are none the newcomers. It is a net.Listener.
type Listener struct {
	net.Listener
	limits Limits
	log    *slog.Logger

	mu        sync.Mutex
	all       int
	of        map[netip.Prefix]int
	strangers []*conn
	refused   uint64
	logged    time.Time
	pick      func(n int) int // one of so many strangers
}

// New returns a listener that takes connections from another one.
func New(l net.Listener, limits Limits, log *slog.Logger) *Listener {
	return &Listener{Listener: l, limits: limits, log: log, of: map[netip.Prefix]int{}, pick: rand.IntN}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: raw, listener: l, source: Source(raw.RemoteAddr())}
		closed := l.take(c)
		if closed != nil {
			_ = closed.Conn.Close()
		}
		if closed != c {
			return c, nil
		}
	}
}

// take has one more connection, and returns the one that is to be closed for that; nil: none.
func (l *Listener) take(c *conn) (closed *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	isOver := l.of[c.source] >= l.limits.OfSource && !c.source.Addr().IsLoopback()
	if isOver || l.all >= l.limits.All || l.limits.Strangers > 0 && len(l.strangers) >= l.limits.Strangers {
		closed = c
		if from := l.candidates(c, isOver); len(from) > 0 {
			closed = from[l.pick(len(from))]
		}
		l.report(closed)
	}
	if closed == c {
		return c
	}
	if closed != nil {
		l.leave(closed)
	}
	l.all++
	l.of[c.source]++
	if l.limits.Strangers > 0 {
		l.strangers = append(l.strangers, c)
	}
	return closed
}

// candidates returns the strangers of which one gives way: all, or those of the newcomer's own source. Which one
// is left to chance, so that many handshakes at once end some, and who holds many places loses most.
func (l *Listener) candidates(c *conn, ofSource bool) []*conn {
	if !ofSource {
		return l.strangers
	}
	return slices.DeleteFunc(slices.Clone(l.strangers), func(o *conn) bool { return o.source != c.source })
}

// report logs from time to time that connections are closed. The caller holds the lock.
func (l *Listener) report(closed *conn) {
	l.refused++
	if now := time.Now(); now.Sub(l.logged) >= logEvery {
		l.logged = now
		l.log.Warn("connections are closed: there are too many", slog.String("listener", l.Addr().String()), slog.String("from", closed.source.String()),
			slog.Int("from-there", l.of[closed.source]), slog.Int("most-from-there", l.limits.OfSource),
			slog.Int("strangers", len(l.strangers)), slog.Int("most-strangers", l.limits.Strangers),
			slog.Int("connections", l.all), slog.Int("most", l.limits.All), slog.Uint64("closed", l.refused))
	}
}

// leave has a connection count no more. The caller holds the lock.
func (l *Listener) leave(c *conn) {
	if c.hasLeft {
		return
	}
	c.hasLeft = true
	l.admit(c)
	l.all--
	if l.of[c.source]--; l.of[c.source] == 0 {
		delete(l.of, c.source)
	}
}

// admit has a connection be no stranger. The caller holds the lock.
func (l *Listener) admit(c *conn) {
	if i := slices.Index(l.strangers, c); i >= 0 {
		l.strangers = slices.Delete(l.strangers, i, i+1)
	}
}

// Admit has a connection of a Listener be no stranger from now on: the other side has shown who
// it is. Other connections it leaves alone.
func Admit(of net.Conn) {
	if c, ok := of.(*conn); ok {
		c.listener.mu.Lock()
		defer c.listener.mu.Unlock()
		c.listener.admit(c)
	}
}

// Refused returns how many connections were closed, since the start.
func (l *Listener) Refused() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

// conn is a connection that counts until it is closed.
type conn struct {
	net.Conn
	listener *Listener
	source   netip.Prefix
	hasLeft  bool // of the listener's lock
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.listener.mu.Lock()
	c.listener.leave(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// Source returns what counts as one source: an IPv4 address, or the network of 64 bits that
// one host may have. The zero prefix is of what has no IP address.
func Source(a net.Addr) netip.Prefix {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Prefix{}
	}
	addr, bits := ap.Addr().Unmap().WithZone(""), 32
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.Prefix(bits)
	if addr.IsLoopback() {
		p = netip.PrefixFrom(addr, addr.BitLen()) // ::1 without its last bits is none
	}
	return p
}
