package peer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tributary-fabric/tributary/internal/core/peering"
)

// ErrUnregistered is why frames come back that a service had lent when it was
// unregistered.
var ErrUnregistered = errors.New("peer: the service is unregistered")

// gate counts who uses something, so that its end can wait for them.
type gate struct {
	isClosing atomic.Bool
	_         [64]byte // what is read for every frame is apart from what changes
	uses      atomic.Int64
	idle      chan struct{} // has room for one
}

func newGate() *gate { return &gate{idle: make(chan struct{}, 1)} }

// begin notes a use; it reports false once shut was called.
func (g *gate) begin() bool {
	g.uses.Add(1)
	if g.isClosing.Load() {
		g.end()
		return false
	}
	return true
}

// end notes the end of a use.
func (g *gate) end() {
	if g.uses.Add(-1) == 0 && g.isClosing.Load() {
		g.wake()
	}
}

// wake has who waits look again.
func (g *gate) wake() {
	select {
	case g.idle <- struct{}{}:
	default:
	}
}

// shut lets nobody in any more.
func (g *gate) shut() { g.isClosing.Store(true) }

// wait waits, after shut, until nobody is in.
func (g *gate) wait() {
	for g.uses.Load() != 0 {
		<-g.idle
	}
	g.wake() // others that wait
}

// service is a handler that is registered. Its gate counts calls that run, and reports of
// frames that are about to be made.
type service struct {
	*gate
	handler Handler
}

// Register has a service be handed what comes for it. Up is not called for connections
// that are there already.
func (h *Host) Register(s Service, handler Handler) error {
	if s == itself || handler == nil || !h.services[s].CompareAndSwap(nil, &service{newGate(), handler}) {
		return fmt.Errorf("%w: service %d is there already, or is none", ErrConfig, s)
	}
	h.fix(s)
	return nil
}

// fix has the host's incarnation stay, where a service has it in its messages.
func (h *Host) fix(s Service) {
	if s != Communicators {
		h.add(peering.Input{Kind: peering.Pinned})
	}
}

// Unregister ends that, and waits until no call of the handler runs: it must not be
// called by one, and what a call waits for has to come. All that the service has lent is
// its own again: Handler.Sent has reported it, with ErrUnregistered if it was not sent
// yet. A connection in the middle of a frame of class Large that lies in the service's
// memory is closed.
func (h *Host) Unregister(s Service) {
	r := h.services[s].Load()
	if r == nil {
		return
	}
	r.shut()
	h.withdraw(s)
	r.wait()
	h.services[s].CompareAndSwap(r, nil)
	for _, c := range h.shared() {
		c.say(gone, byte(s))
	}
}

// shared returns the connections that carry frames.
func (h *Host) shared() []*Conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Values(h.conns))
}

// withdraw takes back what a service has lent, which lends no more.
func (h *Host) withdraw(s Service) {
	var marks []mark
	h.mu.Lock() // so that no connection takes over what waits, unseen
	channels := map[*Channel][]*Conn{}
	for _, l := range h.channels {
		channels[l] = nil
	}
	for _, c := range h.conns {
		channels[c.channel] = append(channels[c.channel], c)
	}
	for l, conns := range channels {
		marks = append(marks, l.withdraw(s, conns)...)
	}
	h.take(marks)
	h.mu.Unlock()
	h.report(marks, ErrUnregistered)
}

// withdraw takes the marks of a service from a channel and from its connections.
func (l *Channel) withdraw(s Service, conns []*Conn) (marks []mark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	marks = l.queue.withdraw(s, marks)
	for _, c := range conns {
		isLent := false
		if c.stripe != nil {
			marks, isLent = c.stripe.withdraw(s, c, marks)
		}
		for _, p := range c.all() {
			isLent = isLent || p.lending == s || c.class.isTracked() && p.queue.has(s)
			marks = p.queue.withdraw(s, marks)
			marks = p.unacked.withdraw(s, marks)
			p.writing, marks = withdraw(s, p.writing, marks)
		}
		if isLent {
			c.close(ErrUnregistered)
		}
	}
	return marks
}

// has reports whether frames lie in a service's memory.
func (q *queue) has(s Service) bool {
	return slices.ContainsFunc(q.lent, func(f lent) bool { return f.isLent && f.service == s })
}

// withdraw moves the service's marks. What is copied is still sent.
func (q *queue) withdraw(s Service, marks []mark) []mark {
	q.mark, marks = withdraw(s, q.mark, marks)
	q.lent = slices.DeleteFunc(q.lent, func(f lent) bool {
		is := f.service == s && f.number != 0
		if is {
			marks = append(marks, mark{service: s, number: f.number})
			q.size -= f.size()
		}
		return is
	})
	return marks
}

func withdraw(s Service, from, to []mark) (left, moved []mark) {
	left = slices.DeleteFunc(from, func(m mark) bool {
		if m.service == s {
			to = append(to, m)
		}
		return m.service == s
	})
	return left, to
}

// isServed reports whether there is somebody to report of a service's frames to. The
// caller holds a channel's lock, so that Unregister finds what is lent then.
func (h *Host) isServed(s Service) bool {
	r := h.services[s].Load()
	return r != nil && !r.isClosing.Load()
}

// take has Unregister wait for what is taken out of queues to be reported. The caller holds
// the channel's lock, or the host's.
func (h *Host) take(marks []mark) {
	for i := range marks {
		if i == 0 || marks[i].service != marks[i-1].service {
			h.services[marks[i].service].Load().uses.Add(1)
		}
	}
}

// report reports to services what became of frames that were lent, and taken.
func (h *Host) report(marks []mark, err error) {
	for len(marks) > 0 {
		s := marks[0].service
		list := numberLists.Get().(*[]uint64)
		numbers := (*list)[:0]
		for len(marks) > 0 && marks[0].service == s {
			if n := marks[0].number; n != 0 { // else a part was sent of a frame
				numbers = append(numbers, n)
			}
			marks = marks[1:]
		}
		r := h.services[s].Load() // it waits for this
		if len(numbers) > 0 {
			r.handler.Sent(numbers, err)
		}
		r.end()
		*list = numbers
		numberLists.Put(list)
	}
}

// numberLists are lists of frames that are reported together.
var numberLists = sync.Pool{New: func() any { return new([]uint64) }}

// eachService calls all handlers.
func (h *Host) eachService(do func(Handler)) {
	for i := range h.services {
		if s := h.services[i].Load(); s != nil && s.begin() {
			do(s.handler)
			s.end()
		}
	}
}

// eachPathHandler calls those that see the paths of a class.
func (h *Host) eachPathHandler(class Class, do func(PathHandler)) {
	if !class.isTracked() {
		return
	}
	h.eachService(func(s Handler) {
		if p, ok := s.(PathHandler); ok {
			do(p)
		}
	})
}
