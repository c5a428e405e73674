package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/driver/attach"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// When a connection of a process that is in a zone and nothing else is given up. Heartbeats
// find out about nodes long before, and are cheaper than asking on each connection; but a
// partition that is over is not to be waited for until TCP sends again.
const (
	deadAfter = 5 * time.Minute
	lostAfter = 10 * time.Second
)

// Join starts a node for a process without other services; others use
// hostlib.Config.Membership. It returns at once; notices and View report other nodes
// later. The caller owns the node, and must Leave or Close it.
func Join(ctx context.Context, c Config) (*Node, error) {
	n, err := start(ctx, c, func(ctx context.Context, p attach.Place) (*peer.Host, error) {
		return peer.Listen(ctx, peer.Config{
			Name: c.Name, Incarnation: p.Incarnation, Listener: p.Listener, Dial: p.Dial, Resolve: p.Resolve,
			TLS: p.TLS, AllowPlaintext: c.AllowPlaintext, DeadAfter: deadAfter, LostAfter: lostAfter, Log: c.withDefaults().Log,
		})
	})
	if err == nil {
		n.isOwn = true
		go n.keep()
	}
	return n, err
}

func init() {
	attach.Membership = func(ctx context.Context, c any, listen attach.Listen) (any, error) {
		n, err := start(ctx, *c.(*Config), listen)
		if err == nil {
			go n.keep()
		}
		return n, err
	}
}

// start starts a node on the host that listen makes.
func start(ctx context.Context, c Config, listen attach.Listen) (*Node, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	seeds, supervisors, err := c.locate(ctx)
	if err != nil {
		return nil, err
	}
	n := &Node{
		over: make(chan struct{}), done: make(chan struct{}), ready: make(chan struct{}), drained: make(chan struct{}), silent: make(chan struct{}),
		watchers: map[*Watcher]struct{}{}, readers: map[*AttributeWatcher]struct{}{},
	}
	if n.source, err = c.trust(); err != nil {
		return nil, err
	}
	n.shared = c.TLS == nil && n.source != nil
	listener, socket, addr, err := c.listen(ctx, c.Listen, slices.Concat(seeds, supervisors))
	if err != nil {
		return nil, err
	}
	// What cannot listen has not started, and leaves the file as it is.
	incarnation, again, err := nextIncarnation(c.State, time.Now())
	if err != nil {
		return nil, errors.Join(err, listener.Close(), socket.Close())
	}
	if again && c.Timing.Stealth == 0 {
		c.Timing.Stealth = 1
	}
	n.cfg, n.socket, n.addr, n.incarnation = &c, socket, addr, incarnation
	n.ctx, n.stop = context.WithCancel(context.WithoutCancel(ctx))
	n.lingers, n.hurry = context.WithCancel(n.ctx)
	n.host, err = listen(ctx, attach.Place{
		Listener: listener, Incarnation: incarnation, TLS: n.source, Resolve: n.resolve,
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return (&net.Dialer{}).DialContext(ctx, "tcp", address)
			}
			return c.Network.Dial(ctx, at)
		},
	})
	if err != nil {
		n.stop()
		_ = listener.Close() // it may be closed already
		return nil, errors.Join(fmt.Errorf("membership: %s: %w", c.Name, err), socket.Close())
	}
	if err := n.begin(seeds, supervisors); err != nil {
		n.stop()
		return nil, errors.Join(err, n.host.Close(), socket.Close())
	}
	return n, nil
}

// listen opens a node's sockets at an address, and returns the one by which others know it.
func (c *Config) listen(ctx context.Context, at string, others []netip.AddrPort) (net.Listener, Datagrams, netip.AddrPort, error) {
	listener, socket, err := c.Network.Listen(ctx, at)
	if err != nil {
		return nil, nil, netip.AddrPort{}, fmt.Errorf("membership: %s: listening at %s: %w", c.Name, c.Listen, err)
	}
	addr, err := advertised(ctx, c, listener.Addr(), others)
	if err == nil {
		err = c.permits(listener.Addr())
	}
	if err != nil {
		err = errors.Join(err, listener.Close(), socket.Close())
	}
	return listener, socket, addr, err
}

// permits returns why a node may not listen at an address.
func (c *Config) permits(at net.Addr) error {
	if c.TLS != nil || len(c.Keys) > 0 || c.AllowPlaintext {
		return nil
	}
	if a, err := netip.ParseAddrPort(at.String()); err == nil && a.Addr().IsLoopback() {
		return nil
	}
	return fmt.Errorf("%w: it listens at %v: without keys and certificates only loopback addresses are served, unless AllowPlaintext", ErrConfig, at)
}

// trust returns the certificate that authenticates the node's connections: the host's,
// or one by the keys, which everybody makes who has them; nil: there is neither.
func (c *Config) trust() (*pki.Source, error) {
	identity := pki.Identity{Role: pki.Host, Name: peering.HostOf(c.Name)}
	var source *pki.Source
	var err error
	switch {
	case c.TLS != nil:
		if source, err = pki.Load(pki.Files(*c.TLS), c.Log); err == nil {
			err = source.Expect(pki.Want(identity))
		}
	case len(c.Keys) > 0:
		source, err = pki.Shared(identity, c.secrets()...)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return source, nil
}

// begin gives the node its identity and its core, and starts what runs.
func (n *Node) begin(seeds, supervisors []netip.AddrPort) (err error) {
	n.log = n.cfg.Log.With(slog.String("node", n.cfg.Name), slog.Uint64("zone", uint64(n.cfg.Zone)))
	if n.id, err = gossip.MakeID(n.cfg.Name, n.addr); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	edition := uint64(0)
	if n.cfg.TLS != nil {
		if err := peering.Credible(n.incarnation, time.Now()); err != nil {
			return fmt.Errorf("%w: %s: %w: no other node would take it; correct the clock, or remove the file if it was wrong before", ErrState, n.cfg.State, err)
		}
		edition = n.source.Edition()
		if n.identity, err = newIdentity(n.source, n.zoneMark(), n.id, n.incarnation); err != nil {
			return err
		}
	}
	clock := runner.NewClock()
	if n.step, err = newStepper(n, clock.Now(), seeds, supervisors); err != nil {
		return err
	}
	if err := n.host.Register(peer.Membership, (*service)(n)); err != nil {
		return err
	}
	n.loop, err = runner.Start(runner.Config[item, member.Output]{
		Core: n.step, Clock: clock, Apply: n.step.apply, Queue: postedAtMost,
	})
	close(n.ready)
	if err != nil {
		return err
	}
	n.tasks.Go(n.receive)
	if n.identity != nil {
		n.tasks.Go(func() { n.recheck(edition) })
	}
	n.log.Info("joined", slog.Any("address", n.addr), slog.Uint64("incarnation", n.incarnation), slog.Int("bootstrap", len(seeds)))
	return nil
}
