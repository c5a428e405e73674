package hostlib

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/driver/speed"
	"github.com/tributary-fabric/tributary/membership"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// DefaultWindow is the largest number of chunks in flight where Config.Window does
// not set another. More than that makes links no faster that have round trips
// below 3 ms at 1 Gbit/s, or 300 us at 10, and takes memory from the caches: a
// switch uses twice as many slots in turn. How many are in flight follows the
// delay, and is far less on most links.
const DefaultWindow = 256

// Config is the configuration of a host. Only Name is required; other zero fields have
// their defaults.
type Config struct {
	// Name is the host's name in the fabric's topology: 1 to 255 bytes of printable UTF-8.
	Name string
	// Process is a label of this process, if several processes of the host join: unique
	// among living ones, and part of the members' lists. They share the host's
	// certificate. Those of one communicator, up to 64 of a host, reduce in shared memory, and
	// the host contributes once.
	Process string
	// Leaf names the switch that this host is connected to, or its rack, as the scheduler knows it;
	// empty: it is not known. See Member.Leaf.
	Leaf string

	// Listen is the TCP address for other members; by default "127.0.0.1:0", with
	// Membership a free port of the address from which this host reaches the others of
	// the zone, which is also the port of the zone's datagrams. The members' lists must
	// have the address as others see it.
	Listen string
	// Rails are the host's independent paths to others, at most MaxRails: connections are
	// spread over all of them, and survive the loss of any but the last. Others reach the
	// host first by Listen. nil: the address of Listen is the only one, or, if that is
	// unspecified (0.0.0.0 or ::), the interfaces that are up and have an address that other
	// machines can reach. See Host.Rails.
	Rails []Rail
	// Resolve returns the TCP address of another host, for each new connection, within
	// its time limit. nil: Membership has the addresses of the zone's hosts, the
	// members' lists those of others.
	Resolve func(ctx context.Context, host string) (address string, err error)
	// Incarnation of this start of the host, larger than that of every earlier start
	// under the name. 0: that of Membership, or else the clock's nanoseconds.
	Incarnation uint64
	// Data is the local address of the UDP sockets for packets of switches; by default
	// that of Listen or, with several Rails, of the rail at the end of the tree's link:
	// leave it empty then. Switches must be able to reach it. With the unspecified address
	// (0.0.0.0 or ::) packets take the planned links: the topology must have the
	// addresses of the host's links, and the leaf switch sends to the one of the tree's
	// link.
	Data netip.Addr
	// Manager is the address of the offload manager, "host:port"; empty: all operations
	// run over hosts.
	Manager string
	// Speed is how fast this host reduces, for the manager's choice between switches and
	// hosts; the zero value is measured where there is a Manager, once in a process and in
	// some ms, for which only the connection to the manager waits. The manager's topology
	// may have another, which counts.
	Speed topology.Speed

	// Costs are what members choose the way of collectives by, where no manager has others: those
	// of the lowest rank's host count. nil: pathsel.DefaultCosts. Their Links count before those in a
	// manager's topology; without a manager nothing else says how fast links are. Not to be changed.
	Costs *pathsel.Costs

	// LLDP announces the host on its links by LLDP, so that the manager's discovery finds
	// it. That takes the capability CAP_NET_RAW (and Linux): without it the host logs
	// that, and does not announce itself; "offload-manager lldp" can in its place. Of the
	// processes of a machine one does.
	LLDP bool

	// TLS are the files of the host's certificate, which authenticates and encrypts the
	// connections to other hosts, whose certificates must name them, and to the manager,
	// whose certificate must name a manager. Packets to and from switches are not
	// encrypted. nil: plaintext, on loopback addresses only.
	TLS *TLS
	// AllowPlaintext allows other addresses than loopback without certificates: any
	// client may then claim to be any host.
	AllowPlaintext bool

	// Membership makes the host a node of a zone: see Host.Members. Leave its Name,
	// Listen, TLS, AllowPlaintext and Log empty; the host's apply. A member whose node
	// has failed, or has restarted, counts as dead at once, without DeadAfter; hosts
	// outside the zone, and nodes that leave it, count as dead only when their
	// connections fail. nil: only connections report deaths.
	Membership *membership.Config
	// DeadAfter is how long a member may be unreachable before it counts as dead and its
	// communicators end; 5 s by default, at least 1 ms.
	DeadAfter time.Duration

	// SlowAfter is how long an operation may take before its members find out whether all have
	// called it, and the same one, and how often they do; 1 s by default, at least 10 ms.
	// Communicator.Waiting then names who has not, and the log at the next time.
	SlowAfter time.Duration

	// ForgetAfter is how long, without certificates, the incarnation of a host is
	// remembered after its last connection; 10 s by default. Until then an earlier
	// incarnation is refused, even if a stranger used the name.
	ForgetAfter time.Duration

	// OfferWait is how long the creation of a communicator waits for its first tree of
	// switches; 3 s by default, negative: not at all. After that it starts over hosts,
	// and changes to switches when a tree is offered.
	OfferWait time.Duration
	// ChunkBytes is the largest payload of a packet; 1432 by default, for an MTU of
	// 1500. All members must set the same; multiples of 16 up to 32768 suit every
	// element type.
	ChunkBytes int
	// Window is the largest number of chunks in flight, a power of two; by default
	// DefaultWindow. All members must set the same. A tree may have a smaller one: it
	// needs twice as many slots on each of its switches.
	Window uint32
	// SharedMemory is the most that the processes of a host share for one communicator in which
	// there are several of them, in bytes: 16 MiB by default, at least 8 MiB. 2 processes take
	// 2 MiB, 4 take 4 MiB, 16 or more take all. Pages that were used stay until the communicator
	// ends. The least of all members counts. Negative: none is shared, and operations run over
	// a tree of all processes.
	SharedMemory int

	Log *slog.Logger // nil: nowhere
}

// TLS names PEM files. Files that change are read again, and connections end with their
// certificate.
type TLS struct {
	Cert    string // of a certificate for the URI tributary://host/NAME
	Key     string // its key, which nobody but the file's owner may read
	CA      string // the authorities that are trusted
	Revoked string // revocation lists of authorities, or one in DER; empty: none
}

// filled returns c with its defaults.
func (c Config) filled() Config {
	if c.Listen == "" && c.Membership == nil {
		c.Listen = "127.0.0.1:0"
	}
	c.SlowAfter = cmp.Or(c.SlowAfter, time.Second)
	c.DeadAfter, c.OfferWait = cmp.Or(c.DeadAfter, 5*time.Second), cmp.Or(c.OfferWait, 3*time.Second)
	c.SharedMemory = cmp.Or(c.SharedMemory, 16<<20)
	c.ChunkBytes, c.Window = cmp.Or(c.ChunkBytes, 1432), cmp.Or(c.Window, DefaultWindow)
	if c.Costs == nil {
		c.Costs = pathsel.DefaultCosts()
	}
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
	if c.SlowAfter < 10*time.Millisecond {
		return fmt.Errorf("%w: SlowAfter is %v, want at least %v", ErrConfig, c.SlowAfter, 10*time.Millisecond)
	}
	if c.SharedMemory >= 0 && c.SharedMemory < leastShared {
		return fmt.Errorf("%w: SharedMemory is %d bytes, want at least %d, or a negative number for none", ErrConfig, c.SharedMemory, leastShared)
	}
	if c.ForgetAfter < 0 {
		return fmt.Errorf("%w: ForgetAfter is %v, want 0 or more", ErrConfig, c.ForgetAfter)
	}
	if c.TLS != nil {
		if err := pki.Files(*c.TLS).Check(); err != nil {
			return fmt.Errorf("%w: %w", ErrConfig, err)
		}
	}
	if err := checkRails(c.Rails); err != nil {
		return fmt.Errorf("%w: Rails: %w", ErrConfig, err)
	}
	if c.Manager != "" {
		if _, _, err := net.SplitHostPort(c.Manager); err != nil {
			return fmt.Errorf("%w: the manager's %w", ErrConfig, err)
		}
	}
	if err := c.Speed.Validate(); err != nil {
		return fmt.Errorf("%w: Speed: %w", ErrConfig, err)
	}
	if err := c.Costs.Validate(); err != nil {
		return fmt.Errorf("%w: Costs: %w", ErrConfig, err)
	}
	s := session.Config{ChunkBytes: c.ChunkBytes, Window: c.Window}
	if err := s.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}

// speed returns Speed, or the measured one, which takes time where nobody has asked before.
func (c Config) speed() topology.Speed {
	if c.Speed.Known() {
		return c.Speed
	}
	return speed.Host()
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
	source, err := pki.Load(pki.Files(*c.TLS), c.Log)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if err := source.Expect(pki.Want{Role: pki.Host, Name: c.Name}); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return source, nil
}
