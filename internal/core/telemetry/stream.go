package telemetry

import (
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// stream is one subscriber.
type stream struct {
	Open
	subs    []*sub
	items   map[string]*item // by the leaf's name: those that wait and, of mode Streaming, all
	queue   item             // begin and end of the items that wait, in a ring
	mark    item             // sync, in the queue
	waiting int              // in the queue
	lacks   set              // parts that have to be read before everything is sent
	due     bool             // everything is to be sent
	ready   bool             // a batch can be sent
}

// sub is a subscription of a stream.
type sub struct {
	*Subscription
	of       *stream
	every    time.Duration // between samples; 0: none are taken
	needs    set           // parts with counters that it selects
	lacks    set           // of them, that have to be read before what is due is sent
	sampling bool
	beating  bool
	sample   core.Timer[*sub]
	beat     core.Timer[*sub]
}

// state is how an item waits.
type state uint8

const (
	idle state = iota
	updated
	deleted
)

// item is a leaf in a stream.
type item struct {
	leaf       *leaf
	of         *stream
	prev, next *item
	state      state
	onChange   bool // it waits when it changes
	sent       bool // the subscriber has it
	made       bool // value is what waited last, or what the subscriber need not be sent
	value      openconfig.Value
	now        bool // it is true now, rather than since leaf.at
	duplicates uint32
}

func newStream(o *Open) *stream {
	s := &stream{Open: *o, items: map[string]*item{}}
	s.queue.prev, s.queue.next = &s.queue, &s.queue
	for i := range s.Subscriptions {
		b := &sub{Subscription: &s.Subscriptions[i], of: s}
		b.needs = needed(b.Path)
		b.sample.Of, b.beat.Of = b, b
		s.subs = append(s.subs, b)
	}
	return s
}

func (s *stream) link(i *item) {
	i.prev, i.next = s.queue.prev, &s.queue
	i.prev.next, s.queue.prev = i, i
	s.waiting++
}

func (s *stream) unlink(i *item) {
	i.prev.next, i.next.prev = i.next, i.prev
	i.prev, i.next = nil, nil
	s.waiting--
}

// attach has a leaf in the stream. One that was removed, and whose removal waits, is the
// same as before.
func (s *stream) attach(l *leaf) *item {
	i := s.items[l.name]
	if i == nil {
		i = &item{of: s}
		s.items[l.name] = i
	}
	if i.leaf != l {
		i.leaf, i.onChange = l, false
		l.items = append(l.items, i)
	}
	return i
}

// forget drops an item that does not wait.
func (s *stream) forget(i *item) {
	delete(s.items, i.leaf.name)
	i.leaf.items = slices.DeleteFunc(i.leaf.items, func(x *item) bool { return x == i })
}

// push has the leaf wait with its value; now says that it is due rather than changed.
func (i *item) push(now bool) {
	switch i.state {
	case idle:
		i.state, i.duplicates = updated, 0
		i.of.link(i)
	case updated, deleted:
		i.state = updated
		i.duplicates++
	}
	i.value, i.made, i.now = i.leaf.value, true, now && i.leaf.part == Events
}

// removed has the leaf's removal wait, if the subscriber has it.
func (i *item) removed() {
	switch {
	case i.sent && i.state == idle:
		i.of.link(i)
		fallthrough
	case i.sent:
		i.state, i.made = deleted, false
	default:
		if i.state != idle {
			i.of.unlink(i)
		}
		delete(i.of.items, i.leaf.name)
	}
}

// take puts out a batch of what waits.
func (s *stream) take(most int) (b Batch, complete bool) {
	b = Batch{Stream: s.Stream, Entries: make([]Entry, 0, min(most, s.waiting))}
	for len(b.Entries) < most && s.queue.next != &s.queue {
		i := s.queue.next
		s.unlink(i)
		if i == &s.mark {
			b.Entries = append(b.Entries, Entry{Kind: Sync})
			if s.Mode == Once {
				return b, true
			}
			continue
		}
		b.Entries = append(b.Entries, i.entry())
		if i.state == deleted || s.Mode != Streaming {
			s.forget(i)
		}
		i.state, i.sent = idle, true
	}
	return b, false
}

func (i *item) entry() Entry {
	e := Entry{Name: i.leaf.name, Path: i.leaf.path, Leaf: i.leaf.of, At: i.leaf.at}
	if i.state == deleted {
		e.Kind = Delete
		return e
	}
	i.value = i.leaf.value
	e.Value, e.Duplicates = i.value, i.duplicates
	if i.now {
		e.At = 0
	}
	return e
}
