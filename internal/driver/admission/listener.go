package admission

import (
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Limits are of the connections that stand at once.
type Limits struct {
	All      int // in all
	OfSource int // of one Source; of this machine itself as many as in all
}

// logEvery is how often connections that were closed are logged.
const logEvery = time.Minute

// Listener closes connections beyond its limits as soon as they are there, the newcomers. It
// is a net.Listener.
type Listener struct {
	net.Listener
	limits Limits
	log    *slog.Logger

	mu      sync.Mutex
	all     int
	of      map[netip.Prefix]int
	refused uint64
	logged  time.Time
}

// New returns a listener that takes connections from another one.
func New(l net.Listener, limits Limits, log *slog.Logger) *Listener {
	return &Listener{Listener: l, limits: limits, log: log, of: map[netip.Prefix]int{}}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		source := Source(raw.RemoteAddr())
		if l.take(source) {
			return &conn{Conn: raw, leave: sync.OnceFunc(func() { l.leave(source) })}, nil
		}
		_ = raw.Close()
	}
}

// take has one more connection of a source, if there may be one.
func (l *Listener) take(source netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all < l.limits.All && (l.of[source] < l.limits.OfSource || source.Addr().IsLoopback()) {
		l.all++
		l.of[source]++
		return true
	}
	l.refused++
	if now := time.Now(); now.Sub(l.logged) >= logEvery {
		l.logged = now
		l.log.Warn("connections are closed: there are too many", slog.String("listener", l.Addr().String()), slog.String("from", source.String()),
			slog.Int("from-there", l.of[source]), slog.Int("most-from-there", l.limits.OfSource),
			slog.Int("connections", l.all), slog.Int("most", l.limits.All), slog.Uint64("closed", l.refused))
	}
	return false
}

func (l *Listener) leave(source netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.of[source]--; l.of[source] == 0 {
		delete(l.of, source)
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
	leave func()
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.leave()
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
