package hostlib

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/attach"
	"github.com/tributary-fabric/tributary/internal/driver/hooks"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/membership"
)

// Member is one member of a group: a host of the fabric, and where it is to be
// reached.
type Member struct {
	Host string // name in the fabric's topology
	Addr string // TCP address of its Join; empty: where Config.Membership or Config.Resolve says
}

// Host is this process's place in the fabric: where other members reach it.
type Host struct {
	name    string
	cfg     Config
	hooks   hooks.Hooks
	peers   *peer.Host       // where others reach it, and it them
	members *membership.Node // of its zone; nil: it is in none
	locate  func(ctx context.Context, host string) (string, error)
	data    netip.Addr
	manager *control // nil without a manager

	ctx   context.Context // ends with Close
	stop  context.CancelFunc
	cut   context.Context    // ends when goodbyes are not waited for any more
	abort context.CancelFunc // ends cut
	tasks sync.WaitGroup     // communicators

	services  services
	malformed atomic.Uint64 // greetings of callers
	counts    counts
	closing   sync.Once

	mu      sync.Mutex
	closed  bool
	comms   map[attempt]*Communicator // until they have ended
	names   map[string]*Communicator  // those that stand
	tombs   tombs
	parked  map[string][]*caller // callers of communicators that this host has not made yet, by name
	waiting int                  // callers in parked
}

// Join makes this process reachable as the host of that name. ctx is for the joining alone.
func Join(ctx context.Context, c Config) (*Host, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("hostlib: joining: %w", err)
	}
	h := &Host{
		name: c.Name, cfg: c.filled(), hooks: hooks.From(ctx),
		comms: map[attempt]*Communicator{}, names: map[string]*Communicator{},
		parked: map[string][]*caller{},
	}
	h.cfg.Log = h.cfg.Log.With(slog.String("host", c.Name))
	h.ctx, h.stop = context.WithCancel(context.Background())
	h.cut, h.abort = context.WithCancel(context.Background())
	if err := h.open(ctx); err != nil {
		h.stop()
		return nil, fmt.Errorf("hostlib: joining as %s: %w", c.Name, err)
	}
	h.tasks.Go(h.restIdle)
	if h.members != nil {
		w := h.members.Watcher()
		h.tasks.Go(func() { h.watchZone(w) })
	}
	return h, nil
}

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
	if h.data, err = h.cfg.dataAddress(h.peers.Addr()); err == nil && h.cfg.Manager != "" {
		var m managerClient
		if m, err = dialManager(h.cfg.Manager, encryption(source)); err == nil {
			h.manager, err = newControl(h.ctx, m)
		}
	}
	if err != nil {
		return errors.Join(err, h.leave(ctx), h.peers.Close())
	}
	return nil
}

// listen makes the host reachable at a place.
func (h *Host) listen(ctx context.Context, p attach.Place) (_ *peer.Host, err error) {
	if h.locate = p.Resolve; h.cfg.Resolve != nil {
		h.locate = h.cfg.Resolve
	}
	h.peers, err = peer.Listen(ctx, peer.Config{
		Name: h.name, Incarnation: p.Incarnation, Listen: h.cfg.Listen, Listener: p.Listener, Dial: p.Dial, Resolve: h.resolve,
		TLS: p.TLS, AllowPlaintext: h.cfg.AllowPlaintext, Servers: map[peer.Class]peer.Server{peer.Tree: h.greet},
		GreetWithin: helloTimeout, DeadAfter: h.cfg.DeadAfter, ForgetAfter: h.cfg.ForgetAfter,
		// A connection for each neighbour in each communicator, many of them at once.
		Limits: peer.Limits{Pending: 2048, PendingOfSource: 512, Connections: maxParked, Exclusive: maxParked},
		Log:    h.cfg.Log,
	})
	return h.peers, err
}

// resolve returns the address of another host, where no list of members has it.
func (h *Host) resolve(ctx context.Context, host string) (string, error) {
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
func (h *Host) Member() Member { return Member{Host: h.name, Addr: h.Addr()} }

// Close ends every communicator that was not left, for all its members, closes the
// services on the host, and leaves the fabric. It waits until neighbours and the manager have been notified, also
// of communicators that were left. When ctx ends first, connections are cut off:
// members that were not notified find out by DeadAfter, and the error says how many
// communicators they were of.
func (h *Host) Close(ctx context.Context) (err error) {
	h.closing.Do(func() { err = h.close(ctx) })
	return err
}

func (h *Host) close(ctx context.Context) (err error) {
	h.mu.Lock()
	h.closed = true
	comms := slices.Collect(maps.Values(h.comms))
	h.mu.Unlock()
	for _, c := range comms {
		c.conclude(true)
	}
	closed := h.services.close(ctx)
	defer h.abort()
	left := 0
	for _, c := range comms {
		select {
		case <-c.done:
			continue
		default:
		}
		select {
		case <-c.done:
		case <-ctx.Done():
			left++
		}
	}
	if left > 0 {
		err = fmt.Errorf("hostlib: closing %s: %d communicators were cut off: %w", h.name, left, ctx.Err())
		h.abort()
	}
	h.stop()
	err = errors.Join(closed, err, h.leave(ctx), h.peers.Close())
	h.closeParked()
	h.tasks.Wait()
	if h.manager != nil {
		err = errors.Join(err, h.manager.close())
	}
	return err
}

// greet reads what a caller wants and hands its connection to the
// communicator, or keeps it until this host makes that communicator.
func (h *Host) greet(from peer.Peer, conn net.Conn) (kept bool) {
	undo := context.AfterFunc(h.ctx, func() { conn.Close() })
	defer undo()
	_ = conn.SetDeadline(time.Now().Add(helloTimeout))
	hello, err := readHello(conn)
	if err != nil {
		h.malformed.Add(1)
		h.cfg.Log.Info("a connection with a malformed greeting", slog.Any("from", conn.RemoteAddr()), slog.Any("error", err))
		if version := versionError(0); errors.As(err, &version) { // the answer is the same in all versions
			(&caller{conn: conn}).refuse(h.name + ": " + version.Error())
			return true
		}
		return false
	}
	_ = conn.SetDeadline(time.Time{})
	h.receive(&caller{conn: conn, hello: hello, from: from.Name})
	return true
}

// receive hands a caller to the communicator that it wants.
func (h *Host) receive(k *caller) {
	h.mu.Lock()
	c, frame, why := h.wanted(k)
	if c == nil && frame == nil && why == "" {
		h.park(k)
	}
	h.mu.Unlock()
	if c != nil {
		why = c.called(k)
	}
	switch {
	case frame != nil:
		k.last(frame)
	case why != "":
		k.refuse(why)
	}
}

// wanted returns the communicator that a caller wants, its last word, or why it
// cannot be had; none of these if the host has not made it yet.
func (h *Host) wanted(k *caller) (c *Communicator, word []byte, refusal string) {
	if k.hello.of != 0 {
		if c := h.comms[k.hello.of]; c != nil {
			return c, nil, ""
		}
		if word, dead := h.tombs.get(k.hello.of); dead {
			return nil, word, ""
		}
		return nil, nil, fmt.Sprintf("%s knows of that communicator %q no more", h.name, k.hello.name)
	}
	switch c := h.names[k.hello.name]; {
	case c != nil && c.group == k.hello.group && !c.met(k):
		return c, nil, ""
	case c != nil && c.group != k.hello.group && !c.leaving():
		return nil, nil, h.inAnother(c.name)
	case h.closed || h.waiting >= maxParked:
		return nil, nil, h.name + " takes no more callers"
	}
	return nil, nil, ""
}

func (h *Host) inAnother(name string) string {
	return fmt.Sprintf("%s is in a communicator %q with other members or settings", h.name, name)
}

// park keeps a caller until its communicator is made, in place of an earlier
// one of the same member.
func (h *Host) park(k *caller) {
	same := func(o *caller) bool {
		return o.from == k.from && o.hello.group == k.hello.group && o.hello.from == k.hello.from
	}
	all := h.parked[k.hello.name]
	for _, o := range all {
		if same(o) {
			h.release(o)
			o.conn.Close()
		}
	}
	h.parked[k.hello.name] = append(slices.DeleteFunc(all, same), k)
	h.waiting++
	k.timer = time.AfterFunc(parkTimeout, func() { h.unpark(k) })
}

// release notes that a caller is parked no more.
func (h *Host) release(k *caller) {
	h.waiting--
	k.timer.Stop()
}

// unpark gives a caller up that nobody has claimed. It closes the connection
// only: the caller knows best how long it wants to try.
func (h *Host) unpark(k *caller) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.parked[k.hello.name]
	i := slices.Index(all, k)
	if i < 0 {
		return
	}
	h.release(k)
	k.conn.Close()
	if all = slices.Delete(all, i, i+1); len(all) == 0 {
		delete(h.parked, k.hello.name)
	} else {
		h.parked[k.hello.name] = all
	}
}

// claim returns the parked callers of a name.
func (h *Host) claim(name string) []*caller {
	all := h.parked[name]
	delete(h.parked, name)
	for _, k := range all {
		h.release(k)
	}
	return all
}

func (h *Host) closeParked() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name := range h.parked {
		for _, k := range h.claim(name) {
			k.conn.Close()
		}
	}
}

// register makes c known to callers, and returns those who came before.
func (h *Host) register(c *Communicator) ([]*caller, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	if h.names[c.name] != nil {
		return nil, fmt.Errorf("%w: a communicator %q stands already on %s", ErrFormation, c.name, h.name)
	}
	h.comms[c.own], h.names[c.name] = c, c
	return h.claim(c.name), nil
}

// welcome takes the callers who came before c was made.
func (h *Host) welcome(c *Communicator, callers []*caller) {
	for _, k := range callers {
		why := h.inAnother(c.name)
		if k.hello.group == c.group {
			why = c.called(k)
		}
		if why == "" {
			continue
		}
		h.tasks.Go(func() {
			undo := context.AfterFunc(h.ctx, func() { k.conn.Close() })
			defer undo()
			k.refuse(why)
		})
	}
}

// bury forgets c and keeps its last word for who asks later.
func (h *Host) bury(c *Communicator, frame []byte) {
	h.retire(c)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.comms, c.own)
	if frame != nil {
		h.tombs.put(c.own, frame)
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
