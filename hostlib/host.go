package hostlib

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/attach"
	"github.com/tributary-fabric/tributary/internal/driver/hooks"
	"github.com/tributary-fabric/tributary/internal/driver/lldp"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/membership"
	"github.com/tributary-fabric/tributary/pathsel"
)

// Host is this process's place in the fabric: where other members reach it.
type Host struct {
	name    string
	cfg     Config
	hooks   hooks.Hooks
	clock   runner.Clock
	peers   *peer.Host       // where others reach it, and it them
	members *membership.Node // of its zone; nil: it is in none
	locate  func(ctx context.Context, host string) (string, error)
	data    dataPlane
	manager *control      // nil without a manager
	lldp    *lldp.Service // nil: the host does not announce itself

	ctx   context.Context // ends with Close
	stop  context.CancelFunc
	tasks sync.WaitGroup // communicators

	services  services
	rails     railSet
	links     links
	malformed atomic.Uint64 // words of other hosts
	counts    counts
	costs     atomic.Pointer[pathsel.Costs] // by which groups whose lowest rank is here choose
	closing   sync.Once
	done      chan struct{} // closed when the host can be used no more
	ending    sync.Once

	mu         sync.Mutex
	closed     bool
	comms      map[attempt]*Communicator // until they have ended
	names      map[string]*Communicator  // those that stand
	ended      []*Communicator           // those that have ended, and can be shrunk; the oldest first
	revoked    []*Communicator           // those of whose revocation others may not know yet, likewise
	tombstones tombstones
	parked     parked

	awaits  chan struct{} // held by who awaits invitations
	invited chan struct{} // has one when an inviter was parked
}

// Join makes this process reachable as the host of that name. ctx is for the joining alone.
func Join(ctx context.Context, c Config) (*Host, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("hostlib: joining: %w", err)
	}
	h := &Host{
		name: c.Name, cfg: c.filled(), hooks: hooks.From(ctx),
		comms: map[attempt]*Communicator{}, names: map[string]*Communicator{},
		parked: parked{of: map[string]int{}}, links: newLinks(), rails: railSet{new: map[string]bool{}, removed: map[string]bool{}}, done: make(chan struct{}),
		clock: runner.NewClock(), awaits: make(chan struct{}, 1), invited: make(chan struct{}, 1),
	}
	h.costs.Store(h.cfg.Costs)
	h.cfg.Log = h.cfg.Log.With(slog.String("host", c.Name))
	h.ctx, h.stop = context.WithCancel(context.Background())
	if err := h.open(ctx); err != nil {
		h.stop()
		return nil, fmt.Errorf("hostlib: joining as %s: %w", c.Name, err)
	}
	h.announce()
	h.followRails()
	h.tasks.Go(h.restIdle)
	h.tasks.Go(h.callRolls)
	if h.members != nil {
		h.tasks.Go(h.watchZone)
	}
	return h, nil
}

// flushTimeout is how long the end of a host waits for its neighbours to have heard of it.
const flushTimeout = time.Second

// open makes the host reachable, and opens the connection to the manager.
func (h *Host) open(ctx context.Context) error {
	source, err := h.cfg.source()
	if err != nil {
		return err
	}
	if h.cfg.Membership != nil {
		err = h.enter(ctx)
	} else {
		incarnation := cmp.Or(h.cfg.Incarnation, uint64(max(1, time.Now().UnixNano())))
		_, err = h.listen(ctx, attach.Place{Incarnation: incarnation, TLS: source, Resolve: h.cfg.Resolve})
	}
	if err != nil {
		return err
	}
	if err = h.data.init(&h.cfg, h.peers.Addr(), h.rails.made); err == nil && h.cfg.Manager != "" {
		var m managerClient
		if m, err = dialManager(h.cfg.Manager, source); err == nil {
			if h.manager, err = newControl(h.ctx, m, h.cfg.speed); err == nil {
				h.manager.learn = h.learn
			}
		}
	}
	if err != nil {
		return errors.Join(err, h.leave(ctx), h.peers.Close())
	}
	return nil
}

// announce begins to announce the host on its links, if it is to and may.
func (h *Host) announce() {
	if !h.cfg.LLDP {
		return
	}
	var err error
	if h.lldp, err = lldp.Start(lldp.OfHost(h.name, h.hooks.Interfaces, h.cfg.Log)); err != nil {
		h.cfg.Log.Warn("the host is not announced on its links", slog.Any("reason", err))
	}
}

// listen makes the host reachable at a place.
func (h *Host) listen(ctx context.Context, p attach.Place) (_ *peer.Host, err error) {
	if h.locate = p.Resolve; h.cfg.Resolve != nil {
		h.locate = h.cfg.Resolve
	}
	if h.rails.made, err = h.findRails(h.cfg.listenAddress(p.Listener)); err != nil {
		return nil, err
	}
	c := peer.Config{
		Name: processName(h.name, h.cfg.Process), Incarnation: p.Incarnation, Listen: h.cfg.Listen, Listener: p.Listener, Dial: p.Dial, Resolve: h.resolve, Rails: ofPeer(h.rails.made),
		Wrap: h.hooks.Link, TLS: p.TLS, AllowPlaintext: h.cfg.AllowPlaintext, DeadAfter: h.cfg.DeadAfter, ForgetAfter: h.cfg.ForgetAfter,
		Handlers: map[peer.Service]peer.Handler{peer.Communicators: (*handler)(h)}, Log: h.cfg.Log,
	}
	h.peers, err = peer.Listen(ctx, c)
	return h.peers, err
}

// resolve returns the address of another host, where no list of members has it.
func (h *Host) resolve(ctx context.Context, host string) (string, error) {
	if at := h.addressOf(host); at != "" {
		return at, nil
	}
	if h.locate == nil {
		return "", fmt.Errorf("%w: neither Config.Resolve nor Config.Membership, one of which would know %s", ErrArgument, host)
	}
	return h.locate(ctx, host)
}

// dataAddress returns the address of the sockets for packets. A listener on
// all addresses of both families looks the same whatever it was asked for; the
// sockets are of the family that was, and of IPv4 if none.
func (c *Config) dataAddress(listens string) (netip.Addr, error) {
	if c.Data.IsValid() {
		return c.Data, nil
	}
	at, err := netip.ParseAddrPort(listens)
	if a := at.Addr().Unmap(); err != nil || !a.IsUnspecified() {
		return a, err
	}
	if asked, err := netip.ParseAddrPort(c.Listen); err == nil {
		return asked.Addr(), nil
	}
	return netip.IPv4Unspecified(), nil
}

// Name returns the host's name.
func (h *Host) Name() string { return h.name }

// Incarnation returns the number of this start of the host.
func (h *Host) Incarnation() uint64 { return h.peers.Incarnation() }

// Addr returns the TCP address on which other members reach this host.
func (h *Host) Addr() string {
	if h.members != nil {
		return h.members.Addr().String()
	}
	return h.peers.Addr()
}

// Member returns this host as the lists of members name it.
func (h *Host) Member() Member {
	return Member{Host: h.name, Process: h.cfg.Process, Addr: h.Addr(), Leaf: h.cfg.Leaf}
}

// Done returns a channel that is closed when the host can be used no more: it is being
// closed, or its node in the zone has ended, such as for another process that has its name.
func (h *Host) Done() <-chan struct{} { return h.done }

// Err returns nil before Done, and then why the host can be used no more: ErrClosed, or
// what its node in the zone has ended with. The caller has to Close it in any case.
func (h *Host) Err() error {
	select {
	case <-h.done:
		return cmp.Or(h.expelled(), ErrClosed)
	default:
		return nil
	}
}

func (h *Host) end() { h.ending.Do(func() { close(h.done) }) }

// Close ends every communicator that was not left, for all its members, closes the
// services on the host, and leaves the fabric. It waits until neighbours and the manager
// have been notified. When ctx ends first, connections are cut off, and the error has
// their number: members that were not notified detect the end after DeadAfter.
func (h *Host) Close(ctx context.Context) (err error) {
	h.closing.Do(func() { err = h.close(ctx) })
	return err
}

func (h *Host) close(ctx context.Context) (err error) {
	h.end()
	h.mu.Lock()
	h.closed = true
	comms := slices.Collect(maps.Values(h.comms))
	h.mu.Unlock()
	for _, c := range comms {
		c.conclude(true)
	}
	closed := h.services.close(ctx)
	for _, c := range comms {
		<-c.done
	}
	h.endRecoveries(func(*Communicator) bool { return true })
	h.stop()
	if h.lldp != nil {
		h.lldp.Close()
	}
	left := h.leave(ctx)
	within, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	if n := h.peers.Shutdown(within); n > 0 && ctx.Err() != nil {
		err = fmt.Errorf("hostlib: closing %s: %d connections were cut off: %w", h.name, n, ctx.Err())
	}
	err = errors.Join(closed, left, err, h.peers.Close())
	h.unpark(func(*caller) bool { return true })
	h.tasks.Wait()
	if h.manager != nil {
		err = errors.Join(err, h.manager.close())
	}
	return err
}

// register gives c its name.
func (h *Host) register(c *Communicator) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return ErrClosed
	}
	if h.names[c.name] != nil {
		return fmt.Errorf("%w: %s has a communicator %q already, which has not ended", ErrFormation, h.name, c.name)
	}
	h.comms[c.own], h.names[c.name] = c, c
	return nil
}

// welcome takes callers from now on, and those who came before c was made.
func (h *Host) welcome(c *Communicator) {
	h.mu.Lock()
	c.isOpen = true
	var callers []*caller
	if h.names[c.name] == c { // it has not ended by now
		callers = h.parked.take(func(k *caller) bool { return k.name == c.name })
	}
	h.mu.Unlock()
	for _, k := range callers {
		why := ""
		if k.group == c.group {
			why = c.called(k)
		} else {
			why = h.inAnother(c, k)
		}
		if why != "" {
			k.refuse(why)
		}
	}
}

// leaveTombstone forgets c and keeps its last word for who asks later.
func (h *Host) leaveTombstone(c *Communicator, frame []byte) {
	h.retire(c)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.comms, c.own)
	if frame != nil {
		h.tombstones.put(c.own, frame)
	}
}

// retire frees c's name for a successor: c ends, or says goodbye.
func (h *Host) retire(c *Communicator) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.names[c.name] == c {
		delete(h.names, c.name)
	}
}
