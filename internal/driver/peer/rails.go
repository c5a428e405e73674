package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/core/rudp"
	"github.com/tributary-fabric/tributary/internal/driver/udp"
	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

// ErrRailDown is why paths end: their rail carries nothing.
var ErrRailDown = errors.New("peer: the rail is down")

// Rail is one rail of this host.
type Rail struct {
	rail.Rail
	Interface string       // that its connections are bound to, where the system permits it; empty: none
	Listener  net.Listener // of the rail's address; nil: the host makes it. The host closes it
}

// railSet is this host's rails.
type railSet struct {
	mu       sync.Mutex
	all      []Rail
	version  uint32                  // of all
	accounts map[string]*railAccount // by name of rail
	watch    sync.Once
	isClosed bool

	losing sync.Mutex // held while paths are ended, but the last
}

// close takes no more calls.
func (s *railSet) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isClosed = true
	for i := range s.all {
		if l := s.all[i].Listener; l != nil {
			_ = l.Close() // it serves nobody any more
		}
	}
}

// list returns the rails, as others see them, and the number of the list.
func (s *railSet) list() (all []rail.Rail, version uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all = make([]rail.Rail, len(s.all))
	for i := range s.all {
		all[i] = s.all[i].Rail
	}
	return all, s.version
}

// dialFunc connects to an address.
type dialFunc func(ctx context.Context, address string) (net.Conn, error)

// callByRails calls a host by a pair of rails, for one more path of a connection.
func (p *Path) callByRails(ctx context.Context, a *peering.Action) (*greeting.Answer, error) {
	h := p.host
	c := h.conn(a.Conn)
	if c == nil {
		return nil, peering.ErrEnded
	}
	c.rails.mu.Lock()
	pair := c.rails.pairs[a.Path-1]
	c.rails.calling(pair)
	c.rails.mu.Unlock()
	if pair == nil {
		return nil, peering.ErrRemoved
	}
	p.setRails(*pair)
	p.place = int(a.Path) - 1
	return p.call(ctx, h.dialFrom(pair), pair.Theirs.Address.String(), a)
}

// dialFrom returns what connects to others from a rail.
func (h *Host) dialFrom(pair *RailPair) dialFunc {
	return func(ctx context.Context, address string) (net.Conn, error) {
		h.rails.mu.Lock()
		i := slices.IndexFunc(h.rails.all, func(r Rail) bool { return r.Name == pair.Own.Name })
		var own Rail
		if i >= 0 {
			own = h.rails.all[i]
		}
		h.rails.mu.Unlock()
		if i < 0 {
			return nil, peering.ErrRemoved
		}
		if own.Kind == rail.UDP {
			return dialUDP(ctx, &own, address)
		}
		d := net.Dialer{
			KeepAlive: -1, Control: bindTo(own.Interface),
			LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(own.Address.Addr(), 0)),
		}
		conn, err := d.DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, fmt.Errorf("by rail %s: %w", own.Name, err)
		}
		return conn, nil
	}
}

// listen makes what others reach a rail by, unless the host's own listener is that. The
// address is complete then.
func (h *Host) listen(ctx context.Context, r *Rail) error {
	if err := h.cfg.permitted(net.TCPAddrFromAddrPort(r.Address)); err != nil {
		return err
	}
	main, err := netip.ParseAddrPort(h.listener.Addr().String())
	if err == nil && r.Kind == rail.TCP && (main.Addr().IsUnspecified() || main.Addr().Unmap() == r.Address.Addr()) && r.Listener == nil &&
		(r.Address.Port() == 0 || r.Address.Port() == main.Port()) {
		r.Address = netip.AddrPortFrom(r.Address.Addr(), main.Port())
		return nil
	}
	switch {
	case r.Listener != nil:
	case r.Kind == rail.UDP:
		l, err := udp.Listen(r.Address, udp.Config{Connection: rudp.Config{FirstWindow: firstWindow}})
		if err != nil {
			return fmt.Errorf("peer: rail %s: %w", r.Name, err)
		}
		r.Listener = l
	default:
		config := net.ListenConfig{KeepAlive: -1}
		l, err := config.Listen(ctx, "tcp", r.Address.String())
		if err != nil {
			return fmt.Errorf("peer: rail %s: %w", r.Name, err)
		}
		r.Listener = railListener{l, r.Interface}
	}
	at, err := netip.ParseAddrPort(r.Listener.Addr().String())
	if err != nil {
		return errors.Join(fmt.Errorf("peer: rail %s: %w", r.Name, err), r.Listener.Close())
	}
	r.Address = netip.AddrPortFrom(r.Address.Addr(), at.Port())
	return nil
}

// firstWindow are the most bytes that a UDP connection keeps of a peer that is not authenticated.
const firstWindow = 64 << 10

// dialUDP connects to an address from a rail's own socket.
func dialUDP(ctx context.Context, own *Rail, address string) (net.Conn, error) {
	l, ok := own.Listener.(*udp.Listener)
	if !ok {
		return nil, fmt.Errorf("%w: rail %s is of kind %v, and its listener is not", ErrConfig, own.Name, own.Kind)
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	c, err := l.Dial(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("by rail %s: %w", own.Name, err)
	}
	return c, nil
}

// SetRails replaces this host's rails. Those of the same name and address stay as they are;
// the paths of others end as soon as the other host knows, unless they are the last. The errors
// are ErrClosed and those of a listener; then nothing has changed.
func (h *Host) SetRails(ctx context.Context, all []Rail) error {
	s := &h.rails
	if len(all) > rail.MaxRails {
		return fmt.Errorf("%w: %d rails, want at most %d", ErrConfig, len(all), rail.MaxRails)
	}
	s.mu.Lock()
	if s.isClosed {
		s.mu.Unlock()
		return ErrClosed
	}
	before := s.all
	all = slices.Clone(all)
	var made []net.Listener
	for i := range all {
		r := &all[i]
		if old := slices.IndexFunc(before, func(o Rail) bool { return sameRail(&o, r) }); old >= 0 {
			r.Listener, r.Address = before[old].Listener, before[old].Address
			continue
		}
		if err := h.listen(ctx, r); err != nil {
			s.mu.Unlock()
			for _, l := range made {
				err = errors.Join(err, l.Close())
			}
			return err
		}
		if r.Listener != nil {
			made = append(made, r.Listener)
		}
	}
	s.all = all
	s.version++
	s.keep()
	s.mu.Unlock()
	for _, l := range made {
		if !h.tasks.Go(func() { h.accept(l) }) {
			_ = l.Close() // the host is closed
		}
	}
	for i := range before {
		if r := &before[i]; !slices.ContainsFunc(all, func(o Rail) bool { return sameRail(r, &o) }) {
			if r.Listener != nil {
				_ = r.Listener.Close() // it serves nobody any more
			}
		}
	}
	if before == nil {
		return nil
	}
	for _, c := range h.shared() {
		c.announceAgain()
	}
	return nil
}

func sameRail(a, b *Rail) bool {
	return a.Name == b.Name && a.Kind == b.Kind && a.Interface == b.Interface && a.Address.Addr() == b.Address.Addr() &&
		(b.Address.Port() == 0 || a.Address.Port() == b.Address.Port())
}
