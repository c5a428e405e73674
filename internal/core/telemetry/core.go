package telemetry

import (
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// Core decides for one target. Its methods are not safe for concurrent use.
type Core struct {
	cfg           Config
	cache         cache
	streams       []*stream
	streamOf      map[uint64]*stream
	subscriptions int  // of all streams
	begun         bool // events were given
	collecting    set
	samples       core.Timers[*sub]
	beats         core.Timers[*sub]
	coalesced     uint64

	now core.Time
	out *Output
}

// New returns a core that has no leaves.
func New(c Config) *Core {
	return &Core{cfg: c.filled(), cache: cache{leaves: map[string]*leaf{}}, streamOf: map[uint64]*stream{}}
}

// Counters are what a core has, and has counted.
type Counters struct {
	Leaves, Streams int
	Waiting         int    // entries in all queues
	Coalesced       uint64 // updates that a later one has replaced, since they were not taken in time
}

// Counters returns what was counted.
func (c *Core) Counters() Counters {
	n := Counters{Leaves: len(c.cache.leaves), Streams: len(c.streams), Coalesced: c.coalesced}
	for _, s := range c.streams {
		n.Waiting += s.waiting
	}
	return n
}

// Deadline returns the next moment at which the core wants to be stepped.
func (c *Core) Deadline() core.Time { return min(c.samples.Next(), c.beats.Next()) }

// Step takes inputs in order.
func (c *Core) Step(now core.Time, in []Input, out *Output) {
	c.now, c.out = now, out
	for _, i := range in {
		switch i := i.(type) {
		case Open:
			c.open(i)
		case Poll:
			if s := c.streamOf[i.Stream]; s != nil && s.Mode == Polled {
				c.serve(s)
			}
		case Ready:
			if s := c.streamOf[i.Stream]; s != nil {
				s.ready = true
			}
		case Close:
			if s := c.streamOf[i.Stream]; s != nil {
				c.close(s)
			}
		case Snapshot:
			c.snapshot(&i)
		}
	}
	c.expire()
	c.flush()
	c.out = nil
}

func (c *Core) open(o Open) {
	if err := c.check(&o); err != nil {
		c.out.Ended = append(c.out.Ended, End{o.Stream, err})
		return
	}
	s := newStream(&o)
	c.streams = append(c.streams, s)
	c.streamOf[o.Stream] = s
	c.subscriptions += len(s.subs)
	if o.Mode == Streaming {
		for _, b := range s.subs {
			c.cache.walk(b.Path, func(l *leaf) { c.join(b, l) })
			c.schedule(b)
		}
	}
	c.serve(s)
}

// join has a leaf that a subscription of mode Streaming selects in its stream.
func (c *Core) join(b *sub, l *leaf) *item {
	i := b.of.attach(l)
	if b.Trigger == OnChange || b.Trigger == TargetDefined && l.part == Events {
		i.onChange = true
	}
	return i
}

func (c *Core) close(s *stream) {
	delete(c.streamOf, s.Stream)
	c.subscriptions -= len(s.subs)
	c.streams = slices.DeleteFunc(c.streams, func(x *stream) bool { return x == s })
	for _, b := range s.subs {
		c.samples.Set(&b.sample, core.Never)
		c.beats.Set(&b.beat, core.Never)
	}
	for _, i := range s.items {
		i.leaf.items = slices.DeleteFunc(i.leaf.items, func(x *item) bool { return x == i })
	}
}

// serve has everything sent that a stream has subscribed to, once it is read.
func (c *Core) serve(s *stream) {
	s.due = true
	if !c.begun {
		s.lacks |= 1 << Events
	}
	for _, b := range s.subs {
		s.lacks |= b.needs
	}
	c.collect(s.lacks)
	if s.lacks == 0 {
		s.everything(&c.cache)
	}
}

// everything has all leaves wait, and sync behind them.
func (s *stream) everything(from *cache) {
	s.due = false
	if s.UpdatesOnly {
		for _, i := range s.items {
			i.sent, i.made, i.value = true, true, i.leaf.value
		}
	} else {
		for _, b := range s.subs {
			from.walk(b.Path, func(l *leaf) {
				if i := s.attach(l); i.state != updated {
					i.push(false)
				}
			})
		}
	}
	s.sync()
}

func (s *stream) sync() {
	if s.mark.next != nil {
		s.unlink(&s.mark) // of a poll that this one repeats
	}
	s.link(&s.mark)
}

// collect asks for parts to be read that are not being read already.
func (c *Core) collect(wanted set) {
	for p := Events + 1; p < parts; p++ {
		if wanted.has(p) && !c.collecting.has(p) {
			c.collecting |= 1 << p
			c.out.Collect = append(c.out.Collect, p)
		}
	}
}

// snapshot takes all leaves of a part.
func (c *Core) snapshot(s *Snapshot) {
	if s.Part >= parts {
		return
	}
	if !s.Failed {
		c.read(s)
	}
	c.begun = c.begun || s.Part == Events
	c.collecting &^= 1 << s.Part
	for _, x := range c.streams {
		x.lacks &^= 1 << s.Part
		if x.due && x.lacks == 0 {
			x.everything(&c.cache)
		}
		for _, b := range x.subs {
			b.lacks &^= 1 << s.Part
			c.fire(b)
		}
	}
}

// read compares a part with what is known of it.
func (c *Core) read(s *Snapshot) {
	c.cache.round++
	for i := range s.Leaves {
		l := c.cache.leaves[s.Leaves[i].Path]
		switch {
		case l == nil:
			if l = c.cache.add(s.Leaves[i].Path, s.Part); l == nil {
				continue
			}
			l.value, l.at = s.Leaves[i].Value, s.At
			c.appeared(l)
		case l.part != s.Part:
			continue
		case l.value != s.Leaves[i].Value:
			l.value, l.at = s.Leaves[i].Value, s.At
			for _, x := range l.items {
				if x.onChange && !x.of.due {
					x.push(false)
				}
			}
		case s.Part != Events:
			l.at = s.At
		}
		l.round = c.cache.round
	}
	c.cache.of[s.Part] = slices.DeleteFunc(c.cache.of[s.Part], func(l *leaf) bool {
		if l.round == c.cache.round {
			return false
		}
		l.at = s.At
		c.cache.remove(l)
		for _, i := range l.items {
			i.removed()
		}
		l.items = nil
		return true
	})
}

// appeared has a new leaf in the streams that have subscribed to it.
func (c *Core) appeared(l *leaf) {
	for _, s := range c.streams {
		if s.Mode != Streaming {
			continue
		}
		var i *item
		for _, b := range s.subs {
			if b.Path.Covers(l.path) {
				i = c.join(b, l)
			}
		}
		if i != nil && !s.due && (i.onChange || i.state == deleted) {
			i.push(false)
		}
	}
}

// schedule sets the timers of a subscription for the first time.
func (c *Core) schedule(b *sub) {
	switch {
	case b.Trigger == Sample:
		b.every = max(b.Interval, c.cfg.MinInterval)
	case b.needs != 0:
		b.every = c.cfg.Interval
	}
	if b.every != 0 {
		c.samples.Set(&b.sample, next(c.now, b.every))
	}
	if b.Heartbeat != 0 && (b.Trigger != Sample || b.Suppress) {
		c.beats.Set(&b.beat, next(c.now, b.Heartbeat))
	}
}

// next returns the first multiple of an interval that is later than now.
func next(now core.Time, interval time.Duration) core.Time {
	return now.Add(interval - time.Duration(now)%interval)
}

// expire begins what is due.
func (c *Core) expire() {
	for t := c.samples.Due(c.now); t != nil; t = c.samples.Due(c.now) {
		c.samples.Set(t, next(c.now, t.Of.every))
		t.Of.sampling = true
		c.begin(t.Of)
	}
	for t := c.beats.Due(c.now); t != nil; t = c.beats.Due(c.now) {
		c.beats.Set(t, next(c.now, t.Of.Heartbeat))
		t.Of.beating = true
		c.begin(t.Of)
	}
}

func (c *Core) begin(b *sub) {
	b.lacks |= b.needs
	c.collect(b.lacks)
	c.fire(b)
}

// fire has the leaves wait of what is due, if it is read.
func (c *Core) fire(b *sub) {
	if b.lacks != 0 || !b.sampling && !b.beating {
		return
	}
	beating := b.beating
	b.sampling, b.beating = false, false
	if b.Trigger == OnChange && !beating {
		return // the counters are read: those that have changed wait
	}
	c.cache.walk(b.Path, func(l *leaf) {
		if !beating && b.Trigger == TargetDefined && l.part == Events {
			return
		}
		i := b.of.items[l.name]
		if b.Suppress && !beating && i.made && i.value == l.value {
			return
		}
		i.push(true)
	})
}

// flush puts out what can be sent.
func (c *Core) flush() {
	for n := 0; n < len(c.streams); n++ {
		s := c.streams[n]
		if !s.ready || s.waiting == 0 {
			continue
		}
		s.ready = false
		b, complete := s.take(c.cfg.Batch)
		for i := range b.Entries {
			c.coalesced += uint64(b.Entries[i].Duplicates)
		}
		c.out.Batches = append(c.out.Batches, b)
		if complete {
			c.out.Ended = append(c.out.Ended, End{Stream: s.Stream})
			c.close(s)
			n--
		}
	}
}
