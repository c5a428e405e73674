package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// Host is this process among others.
type Host struct {
	cfg         Config
	listener    net.Listener
	loop        *runner.Loop[peering.Input, peering.Output]
	bursts      bursts
	counts      counts
	decided     atomic.Pointer[peering.Counters]
	open        atomic.Int64  // connections for frames
	alone       chan struct{} // there is none any more; has room for one
	incarnation atomic.Uint64 // this host's incarnation
	started     time.Time
	refused     atomic.Int64 // connections that wait for a refusal to be read
	services    [256]atomic.Pointer[service]

	ctx       context.Context // ends with Close
	stop      context.CancelFunc
	isClosing atomic.Bool
	once      sync.Once
	end       error // of Close

	tasks runner.Tasks
	rails railSet

	pollers pollers
	late    late

	notTaken, outdated, notAccepted *summary

	mu       sync.Mutex           // taken before the locks of channels
	closed   bool                 // no more connections
	paths    map[peering.ID]*Path // physical connections
	conns    map[peering.ID]*Conn
	channels map[channelKey]*Channel
	book     map[string]*places // of hosts that are held
	last     uint64             // number of an ID
}

type channelKey struct {
	peer  string
	class Class
}

// counts are what the driver counts.
type counts struct {
	framesIn, framesOut, bytesIn, bytesOut, nobodys, malformed atomic.Uint64
}

// Counters are what a host has counted, and what it holds now.
type Counters struct {
	peering.Counters

	FramesIn, FramesOut uint64 // of services
	BytesIn, BytesOut   uint64 // of them, with heads
	Nobodys             uint64 // frames of services that are not there
	BadFrames           uint64 // connections that were ended by a malformed frame

	Open     int // connections for frames
	Bursts   int // that are lent: to readers, and to handlers
	Channels int

	BurstBytes int // of Bursts
}

// Rejected returns how many calls were not taken: malformed, refused, too slow, evicted
// by others, or gone before they had said what they want.
func (c *Counters) Rejected() uint64 {
	return c.Malformed + c.Refused + c.Slow + c.Evicted + c.Vanished
}

// Listen makes this process reachable for others. Errors are ErrConfig, ErrPlaintext, or
// that it cannot listen.
func Listen(ctx context.Context, c Config) (*Host, error) {
	decides, err := peering.New(c.core())
	if err == nil {
		err = c.validate()
	}
	if err != nil {
		return nil, err
	}
	listener := c.Listener
	if listener == nil {
		if listener, err = (&net.ListenConfig{KeepAlive: -1}).Listen(ctx, "tcp", c.Listen); err != nil {
			return nil, fmt.Errorf("peer: %w", err)
		}
	}
	if c.Dial == nil {
		c.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return (&net.Dialer{KeepAlive: -1}).DialContext(ctx, "tcp", address)
		}
	}
	if err := c.permitted(listener.Addr()); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	c.GreetWithin, c.DeadAfter = cmp.Or(c.GreetWithin, 5*time.Second), cmp.Or(c.DeadAfter, 5*time.Second)
	c.LostAfter, c.KeyBytes = cmp.Or(c.LostAfter, c.DeadAfter), cmp.Or(c.KeyBytes, keyMost)
	h := &Host{
		cfg: c, listener: listener, started: time.Now(), paths: map[peering.ID]*Path{}, conns: map[peering.ID]*Conn{},
		channels: map[channelKey]*Channel{}, book: map[string]*places{},
		alone:       make(chan struct{}, 1),
		notTaken:    newSummary(c.Log, slog.LevelInfo, "refused"),
		outdated:    newSummary(c.Log, slog.LevelWarn, "outdated incarnation"),
		notAccepted: newSummary(c.Log, slog.LevelWarn, "not accepted"),
	}
	h.incarnation.Store(c.Incarnation)
	for s, handler := range c.Handlers {
		h.services[s].Store(&service{gate: newGate(), handler: handler})
	}
	h.decided.Store(&peering.Counters{})
	h.ctx, h.stop = context.WithCancel(context.Background())
	h.loop, err = runner.Start(runner.Config[peering.Input, peering.Output]{
		Core: stepper{decides, &h.decided}, Clock: runner.NewClock(), Apply: h.apply, Queue: 1024,
	})
	if err != nil {
		h.stop()
		return nil, errors.Join(err, listener.Close())
	}
	for service := range c.Handlers {
		h.fix(service)
	}
	h.tasks.Go(func() { h.accept(listener) })
	if err := h.SetRails(ctx, c.Rails); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// stepper is the core, whose counters are read beside its loop.
type stepper struct {
	*peering.Core
	counters *atomic.Pointer[peering.Counters]
}

// Step implements runner.Core.
func (s stepper) Step(now core.Time, in []peering.Input, out *peering.Output) {
	s.Core.Step(now, in, out)
	n := s.Counters()
	s.counters.Store(&n)
}

// Name returns the host's name.
func (h *Host) Name() string { return h.cfg.Name }

// Incarnation returns the number of this host's start, as others know it.
func (h *Host) Incarnation() uint64 { return h.incarnation.Load() }

// IsCertified reports whether all connections show by certificates who is at their ends.
func (h *Host) IsCertified() bool { return h.cfg.TLS != nil }

// Addr returns the TCP address on which others reach this host.
func (h *Host) Addr() string { return h.listener.Addr().String() }

// DeadAfter returns after how much silence a peer is gone.
func (h *Host) DeadAfter() time.Duration { return h.cfg.DeadAfter }

// Channel returns what is sent to a host in a class that is shared.
func (h *Host) Channel(host string, class Class) *Channel {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.channelLocked(host, class)
}

// pin returns a channel that is not forgotten before unpin.
func (h *Host) pin(host string, class Class) *Channel {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.channelLocked(host, class)
	l.pins++
	return l
}

func (h *Host) unpin(l *Channel) {
	h.mu.Lock()
	l.pins--
	h.mu.Unlock()
	h.forget(l)
}

func (h *Host) channelLocked(host string, class Class) *Channel {
	l := h.channels[channelKey{host, class}]
	if l == nil {
		l = &Channel{host: h, peer: host, class: class}
		h.channels[channelKey{host, class}] = l
	}
	return l
}

// forget drops a channel that has nothing to do. Who holds it can still use it.
func (h *Host) forget(l *Channel) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pins == 0 && l.conn == nil && !l.isAsked && l.queue.isEmpty() && h.channels[channelKey{l.peer, l.class}] == l {
		l.isGone = true
		delete(h.channels, channelKey{l.peer, l.class})
	}
}

// Learn reports in which incarnation a host is, by the word of who watches hosts: who has
// an earlier one is not spoken to any more when Learn has returned.
func (h *Host) Learn(host string, incarnation uint64) {
	h.mu.Lock()
	var channels [classes]*Channel
	for class := range channels {
		channels[class] = h.channels[channelKey{host, Class(class)}]
	}
	h.mu.Unlock()
	for _, l := range channels {
		if l != nil {
			l.leaveBefore(incarnation)
		}
	}
	h.add(peering.Input{Kind: peering.Learned, Peer: host, Incarnation: incarnation})
}

// Disconnect ends all connections with a host. What is to be sent makes new ones.
func (h *Host) Disconnect(host string, why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		if c.peer.Name == host {
			c.close(why)
		}
	}
}

// Counters returns the host's counters.
func (h *Host) Counters() Counters {
	n := &h.counts
	k := Counters{
		FramesIn: n.framesIn.Load(), FramesOut: n.framesOut.Load(), BytesIn: n.bytesIn.Load(), BytesOut: n.bytesOut.Load(),
		Nobodys: n.nobodys.Load(), BadFrames: n.malformed.Load(), Open: int(h.open.Load()),
	}
	k.Bursts, k.BurstBytes = h.bursts.out()
	k.Counters = *h.decided.Load()
	h.mu.Lock()
	k.Channels = len(h.channels)
	h.mu.Unlock()
	return k
}

// post gives the loop an input, and waits while too many wait: for goroutines of
// connections, so that who calls waits, too. After Close it is dropped.
func (h *Host) post(in peering.Input) { _ = h.loop.Post(context.Background(), in) }

// add gives the loop an input at once: for services, which may call from the loop's own
// goroutine, or hold locks that it waits for.
func (h *Host) add(in peering.Input) { h.loop.Add(in) }

// Shutdown takes no more calls, and ends all connections once what waits on them is sent
// and the other sides have answered that, or ctx ends: then it returns how many are left.
// Close is still to be called.
func (h *Host) Shutdown(ctx context.Context) (left int) {
	_ = h.listener.Close() // Close reports what is wrong with it
	h.rails.close()
	h.post(peering.Input{Kind: peering.Closing})
	for h.open.Load() > 0 {
		select {
		case <-h.alone:
		case <-ctx.Done():
			return int(h.open.Load())
		}
	}
	return 0
}

// Close ends all connections, and waits for all that runs, handlers included. What
// waits to be sent fails with ErrClosed. Connections that Dial has returned are their
// callers'.
func (h *Host) Close() error {
	h.once.Do(func() {
		h.isClosing.Store(true)
		h.stop()
		if err := h.listener.Close(); !errors.Is(err, net.ErrClosed) {
			h.end = err
		}
		h.rails.close()
		h.mu.Lock()
		h.closed = true
		h.mu.Unlock()
		h.late.acknowledge() // what has arrived is not to be taken for lost
		h.mu.Lock()
		for _, p := range h.paths {
			p.close(ErrClosed)
		}
		channels := slices.Collect(maps.Values(h.channels))
		h.mu.Unlock()
		h.tasks.Close()
		h.pollers.close()
		h.loop.Close()
		for _, s := range []*summary{h.notTaken, h.outdated, h.notAccepted} {
			s.flush()
		}
		for _, l := range channels {
			l.fail(ErrClosed)
		}
	})
	return h.end
}

// apply carries out what package peering asks for. It runs on the loop's goroutine.
func (h *Host) apply(_ core.Time, out *peering.Output) (back []peering.Input) {
	for i := range out.Actions {
		a := &out.Actions[i]
		switch a.Do {
		case peering.Dial:
			call := *a // which is reset before it is made
			ctx, cancel := context.WithTimeout(h.ctx, h.cfg.GreetWithin)
			p := h.called(&call, cancel) // before package peering may close it
			if !h.tasks.Go(func() { h.dial(ctx, p, &call); cancel() }) {
				cancel()
				h.drop(p)
				back = append(back, peering.Input{Kind: peering.Ended, ID: a.ID, Err: ErrClosed})
			}
		case peering.Fail:
			h.failed(a)
		case peering.Raise:
			h.cfg.Log.Warn("others know a later incarnation of this host", slog.Uint64("before", h.Incarnation()), slog.Uint64("incarnation", a.Incarnation))
			h.incarnation.Store(a.Incarnation)
		case peering.Restarted:
			h.cfg.Log.Info("a host has started again", slog.String("peer", a.Peer), slog.Uint64("before", a.Before), slog.Uint64("incarnation", a.Incarnation))
			h.eachService(func(s Handler) { s.Restarted(a.Peer, a.Before, a.Incarnation) })
		case peering.Forgot:
			h.eachService(func(s Handler) {
				if f, ok := s.(Forgetter); ok {
					f.Forgotten(a.Peer)
				}
			})
		case peering.Accept, peering.Use, peering.Refuse, peering.ClosePath:
			if p := h.path(a.ID); p != nil {
				p.apply(a)
			}
		default:
			if c := h.conn(a.ID); c != nil {
				back = c.apply(a, back)
			} else if p := h.path(a.ID); p != nil && a.Do == peering.Close { // nothing goes over it yet
				p.close(a.Err)
			}
		}
	}
	out.Reset()
	return back
}

// apply carries out what is asked of a physical connection.
func (p *Path) apply(a *peering.Action) {
	switch a.Do {
	case peering.ClosePath:
		p.close(a.Err)
		return
	case peering.Accept, peering.Use:
		p.host.identify(p, a)
	default:
	}
	p.verdict <- *a
}

// apply carries out what is asked of a connection.
func (c *Conn) apply(a *peering.Action, back []peering.Input) []peering.Input {
	switch a.Do {
	case peering.Close:
		if errors.Is(a.Err, peering.ErrDone) {
			c.channel.last(c)
		} else {
			c.close(a.Err)
		}
	case peering.Drain:
		c.channel.drain(c)
	case peering.Ping:
		c.say(ping)
	case peering.Check:
		back = append(back, peering.Input{Kind: peering.Sampled, ID: c.id, Sample: c.sample(time.Now())})
	default:
	}
	return back
}

// failed fails what waits for a connection that cannot be made.
func (h *Host) failed(a *peering.Action) {
	err := fmt.Errorf("peer: calling %s: %w", a.Peer, a.Err)
	h.mu.Lock()
	l := h.channels[channelKey{a.Peer, Class(a.Class)}]
	if p := h.book[a.Peer]; p != nil {
		p.failed++
	}
	h.mu.Unlock()
	if l != nil {
		l.fail(err)
	}
	h.eachService(func(s Handler) { s.Failed(a.Peer, Class(a.Class), err) })
}

// conn returns a connection that has not ended.
func (h *Host) conn(id peering.ID) *Conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.conns[id]
}

// path returns a physical connection that has not ended.
func (h *Host) path(id peering.ID) *Path {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.paths[id]
}

// now returns the time since the host was made.
func (h *Host) now() core.Time { return core.Time(time.Since(h.started)) }

// enter notes a physical connection; it reports false after Close.
func (h *Host) enter(p *Path) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.paths[p.id] = p
	}
	return !h.closed
}

// identify notes what a physical connection is for. What package peering asks of it next may
// come before its own goroutine has seen that.
func (h *Host) identify(p *Path, a *peering.Action) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.paths[p.id] != p {
		return // it has left
	}
	p.peer, p.class = Peer{a.Peer, a.Incarnation}, Class(a.Class)
	if p.channel == nil {
		p.channel = h.channelLocked(a.Peer, p.class)
		p.channel.pins++
	}
	if a.Path != 0 {
		p.conn = h.conns[a.Conn]
		return
	}
	p.conn = &Conn{host: h, id: p.id, peer: p.peer, class: p.class, channel: p.channel}
	h.conns[p.id] = p.conn
}

// drop forgets a call that is not made.
func (h *Host) drop(p *Path) {
	h.mu.Lock()
	delete(h.paths, p.id)
	h.mu.Unlock()
	h.unpin(p.channel)
}

// leave forgets a physical connection, and has package peering know that it has ended.
func (h *Host) leave(p *Path, err error) {
	h.mu.Lock()
	delete(h.paths, p.id)
	l := p.channel
	if c := p.conn; c != nil && len(c.all()) == 0 && (c.isEntered() || c.id == p.id) {
		delete(h.conns, c.id)
	}
	h.mu.Unlock()
	h.post(peering.Input{Kind: peering.Ended, ID: p.id, Err: err})
	if l != nil {
		if l.waits() { // for a connection that was to be this one
			h.post(peering.Input{Kind: peering.Wanted, Peer: l.peer, Class: uint8(l.class)})
		}
		h.unpin(l)
	}
}

// number returns one that was not given before.
func (h *Host) number() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	return h.last
}
