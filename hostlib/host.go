package hostlib

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Member is one member of a group: a host of the fabric, and where it is to be
// reached.
type Member struct {
	Host string // name in the fabric's topology
	Addr string // TCP address of its Join
}

// Host is this process's place in the fabric: where other members reach it.
type Host struct {
	name     string
	set      settings
	listener net.Listener
	data     netip.Addr
	manager  managerClient // nil without a manager

	ctx   context.Context // ends with Close
	stop  context.CancelFunc
	tasks sync.WaitGroup // accept loop, handshakes, communicators

	mu     sync.Mutex
	closed bool
	comms  map[digest]*Communicator
	names  map[string]digest // of the communicators that stand
	made   map[digest]uint32 // how often a group of these members was formed
	tombs  tombs
	parked map[digest][]*caller // callers of communicators that this host has not made yet
}

// Join makes this process reachable as the host of that name.
func Join(ctx context.Context, name string, options ...Option) (*Host, error) {
	s := defaults()
	for _, o := range options {
		o(&s)
	}
	if err := s.validate(); err != nil {
		return nil, err
	}
	if name == "" || len(name) > maxName {
		return nil, fmt.Errorf("hostlib: joining: %w: a host name of %d bytes, want 1 to %d", ErrArgument, len(name), maxName)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.listen)
	if err != nil {
		return nil, fmt.Errorf("hostlib: joining as %s: %w", name, err)
	}
	h := &Host{
		name: name, set: s, listener: listener,
		comms: map[digest]*Communicator{}, names: map[string]digest{}, made: map[digest]uint32{},
		parked: map[digest][]*caller{},
	}
	h.set.log = s.log.With(slog.String("host", name))
	h.data = s.data
	if !h.data.IsValid() {
		h.data = listener.Addr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	}
	if s.manager != "" {
		if h.manager, err = dialManager(s.manager); err != nil {
			return nil, errors.Join(fmt.Errorf("hostlib: joining as %s: %w", name, err), listener.Close())
		}
	}
	h.ctx, h.stop = context.WithCancel(context.Background())
	h.tasks.Go(h.accept)
	return h, nil
}

// Name returns the host's name.
func (h *Host) Name() string { return h.name }

// Addr returns the TCP address on which other members reach this host.
func (h *Host) Addr() string { return h.listener.Addr().String() }

// Member returns this host as the lists of members name it.
func (h *Host) Member() Member { return Member{Host: h.name, Addr: h.Addr()} }

// Close ends every communicator that was not left, which is the death of this
// member to the others, and leaves the fabric. Communicators that were left
// have told their neighbours, or do so now.
func (h *Host) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed = true
	comms := make([]*Communicator, 0, len(h.comms))
	for _, c := range h.comms {
		comms = append(comms, c)
	}
	h.mu.Unlock()
	for _, c := range comms {
		c.close()
	}
	h.stop()
	err := h.listener.Close()
	h.closeParked()
	h.tasks.Wait()
	if h.manager != nil {
		err = errors.Join(err, h.manager.Close())
	}
	return err
}

// accept takes connections from other members until the host is closed.
func (h *Host) accept() {
	for {
		conn, err := h.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			h.set.log.Warn("cannot accept a connection", slog.Any("error", err))
			select {
			case <-h.ctx.Done():
				return
			case <-time.After(50 * time.Millisecond): // out of descriptors, say
			}
			continue
		}
		h.tasks.Go(func() { h.greet(conn) })
	}
}

// greet reads what a caller wants and hands its connection to the
// communicator, or keeps it until this host makes that communicator.
func (h *Host) greet(conn net.Conn) {
	undo := context.AfterFunc(h.ctx, func() { conn.Close() })
	defer undo()
	_ = conn.SetDeadline(time.Now().Add(helloTimeout))
	hello, err := readHello(conn)
	if err != nil {
		h.set.log.Debug("a connection without a sound greeting", slog.Any("from", conn.RemoteAddr()), slog.Any("error", err))
		conn.Close()
		return
	}
	_ = conn.SetDeadline(time.Time{})
	h.receive(&caller{conn: conn, hello: hello})
}

func (h *Host) receive(k *caller) {
	h.mu.Lock()
	c, stands := h.comms[k.hello.group]
	frame, dead := h.tombs.get(k.hello.group)
	other, named := h.names[k.hello.name]
	switch {
	case stands:
		h.mu.Unlock()
		c.called(k)
		return
	case dead:
		h.mu.Unlock()
		k.answer(accepted, "")
		k.last(frame)
		return
	case named && other != k.hello.group:
		h.mu.Unlock()
		k.answer(refused, fmt.Sprintf("%s is in a communicator %q with other members, settings or history", h.name, k.hello.name))
		return
	case h.closed || len(h.parked) >= maxParked:
		h.mu.Unlock()
		k.answer(refused, fmt.Sprintf("%s takes no more callers", h.name))
		return
	}
	h.parked[k.hello.group] = append(h.parked[k.hello.group], k)
	h.mu.Unlock()
	k.timer = time.AfterFunc(parkTimeout, func() { h.unpark(k) })
}

// unpark gives a caller up that nobody has claimed. It closes the connection
// only: the caller knows best how long it wants to try.
func (h *Host) unpark(k *caller) {
	h.mu.Lock()
	defer h.mu.Unlock()
	rest := h.parked[k.hello.group]
	for i := range rest {
		if rest[i] == k {
			k.conn.Close()
			if rest = append(rest[:i], rest[i+1:]...); len(rest) == 0 {
				delete(h.parked, k.hello.group)
			} else {
				h.parked[k.hello.group] = rest
			}
			return
		}
	}
}

func (h *Host) closeParked() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for g, callers := range h.parked {
		for _, k := range callers {
			k.conn.Close()
		}
		delete(h.parked, g)
	}
}

// register makes c known to callers, and returns those who came before.
func (h *Host) register(c *Communicator, base digest) ([]*caller, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	if _, stands := h.names[c.name]; stands {
		return nil, fmt.Errorf("%w: a communicator %q stands already on %s", ErrFormation, c.name, h.name)
	}
	c.group = base.instance(h.made[base])
	h.made[base]++
	h.comms[c.group], h.names[c.name] = c, c.group
	callers := h.parked[c.group]
	delete(h.parked, c.group)
	return callers, nil
}

// bury forgets c and keeps its last word for who asks later.
func (h *Host) bury(c *Communicator, frame []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.comms, c.group)
	if h.names[c.name] == c.group {
		delete(h.names, c.name)
	}
	if frame != nil {
		h.tombs.put(c.group, frame)
	}
}

// retire frees c's name for a successor while c still says goodbye.
func (h *Host) retire(c *Communicator) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.names[c.name] == c.group {
		delete(h.names, c.name)
	}
}
