package sim

import (
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// The streams of a path: of its connection, and of the control plane.
const (
	messageStream = 0
	controlStream = 1

	streams = 2
)

// item is what a stream carries.
type item struct {
	number uint64
	at     core.Time
	kind   Kind
	life   uint64 // of an Up: the connection's
	bytes  []byte
	value  any
}

// local reports whether the item is news that the receiver's own system has for
// it: it does not travel, and nothing can hold it up or lose it.
func (i *item) local() bool { return i.kind == Dead || i.kind == Refused }

// stream carries items one way, in order.
type stream struct {
	queue   []item // numbers and times rising; those before head are gone
	head    int
	next    uint64 // number of the next item
	floor   core.Time
	stalled bool // in World.stalled: its first item has arrived at a cut
}

func (w *World) stream(path int32, which uint8) *stream {
	p := &w.paths[path]
	if p.streams[which] == nil {
		p.streams[which] = &stream{}
	}
	return p.streams[which]
}

// carry puts an item on its way; it arrives no earlier than those before it.
func (w *World) carry(path int32, which uint8, it item, delay time.Duration) {
	s := w.stream(path, which)
	it.at = max(w.now.Add(delay), s.floor)
	w.schedule(path, which, it)
}

// schedule appends an item whose time is set.
func (w *World) schedule(path int32, which uint8, it item) {
	s := w.stream(path, which)
	it.number = s.next
	s.next++
	s.floor = it.at
	s.queue = append(s.queue, it)
	w.queue.Push(it.at, event{kind: itemDue, path: path, stream: which, token: it.number})
}

// travel draws how long something takes on a path.
func (w *World) travel(path int32) time.Duration {
	l := w.link(&w.paths[path])
	return l.Delay + w.upTo(l.Jitter)
}

// items returns what is in flight.
func (s *stream) items() []item { return s.queue[s.head:] }

// remove removes the i-th item in flight.
func (s *stream) remove(i int) {
	if i == 0 {
		s.queue[s.head] = item{}
		if s.head++; 2*s.head >= len(s.queue) {
			s.queue = append(s.queue[:0], s.queue[s.head:]...)
			s.head = 0
		}
		return
	}
	items := s.items()
	copy(items[i:], items[i+1:])
	s.queue = s.queue[:len(s.queue)-1]
}

// itemReady reports whether the item of an event is there and can be delivered.
// What lies before an item that nothing holds up is lost.
func (w *World) itemReady(e *event) bool {
	p := &w.paths[e.path]
	s := p.streams[e.stream]
	for i := range s.items() {
		it := &s.items()[i]
		switch {
		case it.number < e.token:
			continue
		case it.number > e.token:
			return false // lost
		case it.local():
			for range i {
				w.drop(p, s, 0)
			}
			return true
		case w.blocked(p):
			if !s.stalled {
				s.stalled = true
				w.stalled = append(w.stalled, stalled{e.path, e.stream})
			}
			return false
		}
		return i == 0
	}
	return false
}

// item delivers the first item of a stream, which is that of the event.
func (w *World) item(e *event) {
	p := &w.paths[e.path]
	s := p.streams[e.stream]
	it := s.items()[0]
	s.remove(0)
	if it.kind == Up && it.life == p.conn.life { // else that connection is gone, and the news of it follows
		p.conn.reported(e.path)
	}
	w.trace(entry{what: arrived, kind: it.kind, node: p.to, peer: p.from, bytes: it.bytes, value: it.value})
	w.arrive(p.to, Delivery{Kind: it.kind, From: Addr{Node: p.from}, Bytes: it.bytes, Value: it.value}, e.path)
}

// drop loses the i-th item in flight.
func (w *World) drop(p *path, s *stream, i int) {
	it := s.items()[i]
	s.remove(i)
	w.lose(p, it.kind, it.bytes, it.value)
}

// tear loses a random suffix of what travels in a stream: all of it where the
// path is cut.
func (w *World) tear(path int32, which uint8) {
	p := &w.paths[path]
	s := p.streams[which]
	if s == nil {
		return
	}
	travelling := 0
	for i := range s.items() {
		if !s.items()[i].local() {
			travelling++
		}
	}
	keep := 0
	if travelling > 0 && !w.blocked(p) {
		keep = w.rand.IntN(travelling + 1)
	}
	w.shed(path, which, keep)
}

// shed loses all but the first so many of the items that travel in a stream.
func (w *World) shed(path int32, which uint8, keep int) {
	p := &w.paths[path]
	s := p.streams[which]
	if s == nil {
		return
	}
	for i := 0; i < len(s.items()); {
		switch {
		case s.items()[i].local():
			i++
		case keep > 0:
			keep--
			i++
		default:
			w.drop(p, s, i)
		}
	}
}

// clear loses all that is in a stream, news included.
func (w *World) clear(path int32, which uint8) {
	p := &w.paths[path]
	if s := p.streams[which]; s != nil {
		for len(s.items()) > 0 {
			w.drop(p, s, 0)
		}
	}
}

// stalled names a stream that a cut holds up.
type stalled struct {
	path   int32
	stream uint8
}

// resume lets those streams go on that no cut holds up any more. Items get new
// numbers, so that their old events are void.
func (w *World) resume() {
	held := w.stalled[:0]
	for _, h := range w.stalled {
		p := &w.paths[h.path]
		s := p.streams[h.stream]
		if w.blocked(p) {
			held = append(held, h)
			continue
		}
		s.stalled = false
		items := slices.Clone(s.items())
		s.queue, s.head, s.floor = s.queue[:0], 0, w.now
		for _, it := range items {
			if !it.local() {
				it.at = w.now.Add(w.travel(h.path))
			}
			it.at = max(it.at, s.floor)
			w.schedule(h.path, h.stream, it)
		}
	}
	w.stalled = held
	for _, e := range w.waiting {
		w.queue.Push(w.now.Add(w.travel(e.path)), e)
	}
	w.waiting = w.waiting[:0]
}

// notify sends a control value.
func (w *World) notify(from, to NodeID, value any) {
	i := w.path(from, to)
	p := &w.paths[i]
	w.hash.notify(p, value)
	w.sent(p, Controls, 0)
	if w.nodes[to].node == nil {
		w.lose(p, Control, nil, value)
		return
	}
	w.carry(i, controlStream, item{kind: Control, value: value}, w.travel(i))
}

// write sends a message over the connection, if there is one.
func (w *World) write(from, to NodeID, head, body []byte) bool {
	i := w.path(from, to)
	b, fate := w.lend.give(head, body), Fate{Delay: w.travel(i)}
	if len(w.intercepts) > 0 {
		fate = w.intercept(Message, Addr{Node: from}, Addr{Node: to}, b, fate)
	}
	p := &w.paths[i]
	w.hash.send(p, b)
	w.sent(p, Connections, len(b))
	if p.conn == nil || !p.conn.writable(i) {
		w.lose(p, Message, b, nil)
		return false
	}
	w.carry(i, messageStream, item{kind: Message, bytes: b}, fate.Delay)
	return true
}
