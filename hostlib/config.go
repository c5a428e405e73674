package hostlib

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/membership"
)

// DefaultWindow is the largest number of chunks in flight where Config.Window does
// not set another. More than that makes links no faster that have round trips
// below 3 ms at 1 Gbit/s, or 300 us at 10, and takes memory from the caches: a
// switch uses twice as many slots in turn. How many are in flight follows the
// delay, and is far less on most links.
const DefaultWindow = 256

// Config is how a host joins. Name is all that a host needs; other fields that are
// zero have their defaults.
type Config struct {
	// Name is the host's in the fabric's topology: 1 to 255 bytes of printable UTF-8.
	Name string
	// Process is a label of this process, where several of the host join: no two that
	// live have the same, and the members' lists name it. The host's certificate is that
	// of all of them.
	Process string

	// Listen is the TCP address on which other members reach this host;
	// "127.0.0.1:0" by default; with Membership a free port of the address from which
	// this host reaches the others of the zone, and the zone's datagrams come to the same
	// port. The members' lists must name it as others see it.
	Listen string
	// Resolve returns the TCP address of another host; it is asked for every connection
	// that is made, with the time that is left for it. nil: hosts of the zone of
	// Membership are where that says, and others are reached by the addresses of members'
	// lists alone.
	Resolve func(ctx context.Context, host string) (address string, err error)
	// Incarnation of this start of the host; it rises strictly with every start under
	// the name. 0: that of Membership, which keeps it, or else the clock's nanoseconds.
	Incarnation uint64
	// Data is the local address of the UDP sockets that speak to switches; by default
	// that of Listen. Switches must be able to reach it. With the unspecified address
	// (0.0.0.0 or ::) packets take the link that a tree was planned on: the topology
	// has to have the addresses of the host's links, and the manager has the leaf
	// switch send to the one of the tree's.
	Data netip.Addr
	// Manager is the address of the offload manager, "host:port"; empty: there is none,
	// and all operations run over hosts.
	Manager string

	// TLS are the files of the host's certificate, which encrypts and authenticates the
	// connections to other members, whose certificates have to name their hosts, and to
	// the manager, whose certificate has to name a manager. Packets to and from switches
	// are not encrypted. nil: plaintext; then only loopback addresses are served and
	// called.
	TLS *TLS
	// AllowPlaintext serves and calls all addresses without certificates, too: whoever
	// reaches them may say that it is any host.
	AllowPlaintext bool

	// Membership makes the host a node of a zone: see Host.Members. Name, Listen, TLS,
	// AllowPlaintext and Log are the host's own, and empty there. Zones report who has died:
	// a member whose node has failed, or has started again, counts as dead at once, and is
	// not waited for as DeadAfter says; who is not in the zone is not affected, and who
	// leaves it is not dead: its connections report. nil: connections alone report who dies.
	Membership *membership.Config
	// DeadAfter is how long a member may be unreachable before it counts as dead; 5 s
	// by default, and 1 ms at least. Longer outages of its connections end a communicator.
	DeadAfter time.Duration

	// ForgetAfter is how long, without certificates, the incarnation of a host is
	// remembered after its last connection; 10 s by default. Until then nobody is heard
	// under its name in an earlier one, also if it was a stranger who used the name.
	ForgetAfter time.Duration

	// OfferWait is how long the making of a communicator waits for its first tree of
	// switches; 3 s by default, and negative: not at all. After that it starts over
	// hosts, and changes to the switches when a tree is offered.
	OfferWait time.Duration
	// ChunkBytes is the largest payload of a packet; 1432 by default, for a path of 1500
	// bytes. All members must set the same; multiples of 16 up to 32768 are right for
	// every element type.
	ChunkBytes int
	// Window is the largest number of chunks in flight, a power of two; DefaultWindow by
	// default. All members must set the same. A tree may have a smaller one: it needs
	// twice as many slots on each of its switches.
	Window uint32

	Log *slog.Logger // nil: nowhere
}

// TLS names PEM files: of a certificate for the URI tributary://host/NAME, its key, and
// the authorities that are trusted. Files that change are read again.
type TLS struct{ Cert, Key, CA string }

// filled returns c with its defaults.
func (c Config) filled() Config {
	if c.Listen == "" && c.Membership == nil {
		c.Listen = "127.0.0.1:0"
	}
	c.DeadAfter, c.OfferWait = cmp.Or(c.DeadAfter, 5*time.Second), cmp.Or(c.OfferWait, 3*time.Second)
	c.ChunkBytes, c.Window = cmp.Or(c.ChunkBytes, 1432), cmp.Or(c.Window, DefaultWindow)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate reports what is wrong with c, fields that are zero having their
// defaults; the error is ErrConfig. It does not open files.
func (c Config) Validate() error {
	c = c.filled()
	if err := (Member{Host: c.Name, Process: c.Process}).validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if m := c.Membership; m != nil {
		if m.Name != "" && m.Name != c.Name || m.Listen != "" || m.TLS != nil || m.AllowPlaintext || m.Log != nil {
			return fmt.Errorf("%w: Name, Listen, TLS, AllowPlaintext and Log of Membership are the host's: leave them out", ErrConfig)
		}
		if c.Incarnation != 0 {
			return fmt.Errorf("%w: incarnation %d, but that of a host in a zone is Membership's: leave Incarnation out", ErrConfig, c.Incarnation)
		}
		if err := c.zone().Validate(); err != nil {
			return fmt.Errorf("%w: %w", ErrConfig, err)
		}
	}
	if c.DeadAfter < time.Millisecond {
		return fmt.Errorf("%w: DeadAfter is %v, want at least %v", ErrConfig, c.DeadAfter, time.Millisecond)
	}
	if c.ForgetAfter < 0 {
		return fmt.Errorf("%w: ForgetAfter is %v, want 0 or more", ErrConfig, c.ForgetAfter)
	}
	if c.TLS != nil {
		if err := pki.CheckPaths(c.TLS.Cert, c.TLS.Key, c.TLS.CA); err != nil {
			return fmt.Errorf("%w: %w", ErrConfig, err)
		}
	}
	if c.Manager != "" {
		if _, _, err := net.SplitHostPort(c.Manager); err != nil {
			return fmt.Errorf("%w: the manager's %w", ErrConfig, err)
		}
	}
	s := session.Config{ChunkBytes: c.ChunkBytes, Window: c.Window}
	if err := s.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}

// zone returns the configuration of the host's node in its zone.
func (c *Config) zone() *membership.Config {
	m := *c.Membership
	m.Name, m.Listen, m.AllowPlaintext, m.Log = processName(c.Name, c.Process), c.Listen, c.AllowPlaintext, c.Log
	m.TLS = (*membership.TLS)(c.TLS)
	return &m
}

// source returns the host's certificate; nil: there is none.
func (c *Config) source() (*pki.Source, error) {
	if c.TLS == nil {
		return nil, nil
	}
	source, err := pki.Load(c.TLS.Cert, c.TLS.Key, c.TLS.CA, c.Log)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if err := source.Expect(pki.Want{Role: pki.Host, Name: c.Name}); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return source, nil
}

// encryption returns how the host speaks to a manager; nil: in plaintext.
func encryption(source *pki.Source) *tls.Config {
	if source == nil {
		return nil
	}
	return source.Client(pki.Want{Role: pki.Manager})
}
