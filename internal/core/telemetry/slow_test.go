package telemetry

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// slow is the core without a cache, queues or timers: it compares all leaves with all
// subscriptions at each step. It has readers that take everything at once.
type slow struct {
	cfg     Config
	leaves  [parts]map[string]openconfig.Value
	streams map[uint64]*slowStream
	reading set
	collect set
	begun   bool
	said    map[uint64]map[string]string // by stream: what each leaf becomes, and "sync"
}

type slowStream struct {
	Open
	has   map[string]bool // the subscriber has it
	made  map[string]openconfig.Value
	due   bool
	lacks set
	subs  []*slowSub
}

type slowSub struct {
	Subscription
	every, sampleAt, beatAt time.Duration // 0: never
	lacks                   set
	sampling, beating       bool
}

func (m *slow) covers(s *slowSub, name string) bool {
	p, err := openconfig.ParsePath(name)
	return err == nil && s.Path.Covers(p)
}

func (m *slow) all() iterLeaves {
	return func(yield func(Part, string, openconfig.Value)) {
		for p := range m.leaves {
			for _, name := range slices.Sorted(maps.Keys(m.leaves[p])) {
				yield(Part(p), name, m.leaves[p][name])
			}
		}
	}
}

type iterLeaves func(func(Part, string, openconfig.Value))

func (m *slow) update(s *slowStream, name string, v openconfig.Value) {
	m.say(s.Stream, brief(name), v.String())
	s.made[name] = v
	s.has[name] = true
}

func (m *slow) say(stream uint64, name, what string) {
	if m.said[stream] == nil {
		m.said[stream] = map[string]string{}
	}
	m.said[stream][name] = what
}

func (m *slow) ask(wanted set) {
	for p := Events + 1; p < parts; p++ {
		if wanted.has(p) && !m.reading.has(p) {
			m.reading |= 1 << p
			m.collect |= 1 << p
		}
	}
}

func (m *slow) step(now core.Time, in Input) {
	m.said, m.collect = map[uint64]map[string]string{}, 0
	switch i := in.(type) {
	case Open:
		s := &slowStream{Open: i, has: map[string]bool{}, made: map[string]openconfig.Value{}}
		m.streams[i.Stream] = s
		for _, x := range i.Subscriptions {
			b := &slowSub{Subscription: x}
			if i.Mode == Streaming {
				switch {
				case x.Trigger == Sample:
					b.every = max(x.Interval, m.cfg.MinInterval)
				case needed(x.Path) != 0:
					b.every = m.cfg.Interval
				}
				if b.every != 0 {
					b.sampleAt = (time.Duration(now)/b.every + 1) * b.every
				}
				if x.Heartbeat != 0 && (x.Trigger != Sample || x.Suppress) {
					b.beatAt = (time.Duration(now)/x.Heartbeat + 1) * x.Heartbeat
				}
			}
			s.subs = append(s.subs, b)
		}
		m.serve(s)
	case Poll:
		if s := m.streams[i.Stream]; s != nil && s.Mode == Polled {
			m.serve(s)
		}
	case Close:
		delete(m.streams, i.Stream)
	case Snapshot:
		m.snapshot(i)
	}
	for _, id := range slices.Sorted(maps.Keys(m.streams)) {
		s := m.streams[id]
		for _, b := range s.subs {
			if b.sampleAt != 0 && core.Time(b.sampleAt) <= now {
				b.sampleAt, b.sampling = (time.Duration(now)/b.every+1)*b.every, true
				b.lacks |= needed(b.Path)
			}
			if b.beatAt != 0 && core.Time(b.beatAt) <= now {
				b.beatAt, b.beating = (time.Duration(now)/b.Heartbeat+1)*b.Heartbeat, true
				b.lacks |= needed(b.Path)
			}
			m.ask(b.lacks)
			m.fire(s, b)
		}
	}
}

func (m *slow) serve(s *slowStream) {
	s.due = true
	if !m.begun {
		s.lacks |= 1 << Events
	}
	for _, b := range s.subs {
		s.lacks |= needed(b.Path)
	}
	m.ask(s.lacks)
	m.everything(s)
}

func (m *slow) everything(s *slowStream) {
	if !s.due || s.lacks != 0 {
		return
	}
	s.due = false
	m.all()(func(_ Part, name string, v openconfig.Value) {
		for _, b := range s.subs {
			if m.covers(b, name) {
				if s.UpdatesOnly {
					s.has[name], s.made[name] = true, v
				} else {
					m.update(s, name, v)
				}
			}
		}
	})
	m.say(s.Stream, "sync", "")
	if s.Mode == Once {
		delete(m.streams, s.Stream)
	}
}

func (m *slow) snapshot(i Snapshot) {
	if !i.Failed {
		before, after := m.leaves[i.Part], map[string]openconfig.Value{}
		for _, l := range i.Leaves {
			p, err := openconfig.ParsePath(l.Path)
			if err != nil {
				continue
			}
			if of, known := openconfig.Find(p); known && PartOf(of) == i.Part {
				after[l.Path] = l.Value
			}
		}
		m.leaves[i.Part] = after
		for _, s := range m.streams {
			if s.Mode != Streaming {
				continue
			}
			for name := range before {
				if _, there := after[name]; !there {
					if s.has[name] {
						m.say(s.Stream, brief(name), "gone")
					}
					delete(s.has, name)
					delete(s.made, name)
				}
			}
			for name, v := range after {
				old, was := before[name]
				for _, b := range s.subs {
					if (!was || old != v) && !s.due && m.covers(b, name) && (b.Trigger == OnChange || b.Trigger == TargetDefined && i.Part == Events) {
						m.update(s, name, v)
					}
				}
			}
		}
	}
	m.begun = m.begun || i.Part == Events
	m.reading &^= 1 << i.Part
	for _, s := range m.streams {
		s.lacks &^= 1 << i.Part
		m.everything(s)
		for _, b := range s.subs {
			b.lacks &^= 1 << i.Part
			m.fire(s, b)
		}
	}
}

func (m *slow) fire(s *slowStream, b *slowSub) {
	if b.lacks != 0 || !b.sampling && !b.beating {
		return
	}
	m.all()(func(p Part, name string, v openconfig.Value) {
		old, made := s.made[name]
		switch {
		case !m.covers(b, name):
		case b.beating,
			b.Trigger == Sample && !(b.Suppress && made && old == v),
			b.Trigger == TargetDefined && p != Events && !(b.Suppress && made && old == v):
			m.update(s, name, v)
		}
	})
	b.sampling, b.beating = false, false
}

// summary is what a step of the core has said, as the slow one says it.
func (t *trial) summary() (collect set, said map[uint64]map[string]string) {
	said = map[uint64]map[string]string{}
	for _, p := range t.out.Collect {
		collect |= 1 << p
	}
	for _, b := range t.out.Batches {
		of := map[string]string{}
		for _, e := range b.Entries {
			switch e.Kind {
			case Update:
				of[brief(e.Name)] = e.Value.String()
			case Delete:
				of[brief(e.Name)] = "gone"
			case Sync:
				of["sync"] = ""
			}
		}
		said[b.Stream] = of
	}
	return collect, said
}

var trialPaths = []string{
	"/", "/interfaces", "/interfaces/interface[name=a]", "/interfaces/interface[name=*]/state/oper-status",
	"/interfaces/interface/state/counters", "/.../in-octets", "/*/*/state", "/system", "/system/memory", "/system/state/hostname",
	"/.../state/.../in-octets", "/interfaces/*/*/mtu",
}

func drawOpen(t *rapid.T, stream uint64) Open {
	o := Open{
		Stream: stream, Mode: rapid.SampledFrom([]Mode{Streaming, Streaming, Streaming, Once, Polled}).Draw(t, "mode"),
		UpdatesOnly: rapid.Bool().Draw(t, "updates only"),
	}
	for range rapid.IntRange(1, 3).Draw(t, "subscriptions") {
		p, err := openconfig.ParsePath(rapid.SampledFrom(trialPaths).Draw(t, "path"))
		if err != nil {
			t.Fatal(err)
		}
		s := Subscription{Path: p, Trigger: Trigger(rapid.IntRange(0, 2).Draw(t, "trigger")), Suppress: rapid.Bool().Draw(t, "suppress")}
		if s.Trigger == Sample {
			s.Interval = time.Duration(rapid.IntRange(0, 3).Draw(t, "interval")) * time.Second
		}
		s.Heartbeat = time.Duration(rapid.IntRange(0, 2).Draw(t, "heartbeat")) * 3 * time.Second
		o.Subscriptions = append(o.Subscriptions, s)
	}
	return o
}

func drawSnapshot(t *rapid.T, p Part) Snapshot {
	in := Snapshot{Part: p, Failed: rapid.IntRange(0, 9).Draw(t, "failed") == 0}
	for _, s := range short {
		for _, of := range []string{"a", "b"} {
			if !strings.Contains(s.path, "X") && of == "b" || rapid.IntRange(0, 3).Draw(t, "absent") == 0 {
				continue
			}
			in.Leaves = append(in.Leaves, Leaf{long(s.name + ":" + of), openconfig.Number(uint64(rapid.IntRange(0, 2).Draw(t, "value")))})
		}
	}
	return in
}

// TestSlow compares the core with the slow one, for readers that take everything at
// once.
func TestSlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newTrial(Config{})
		m := &slow{cfg: Config{}.filled(), streams: map[uint64]*slowStream{}}
		next := uint64(1)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			var in Input
			switch rapid.IntRange(0, 5).Draw(t, "input") {
			case 0:
				in = drawOpen(t, next)
				next++
			case 1:
				in = Close{Stream: rapid.Uint64Range(1, next).Draw(t, "stream")}
			case 2:
				in = Poll{Stream: rapid.Uint64Range(1, next).Draw(t, "stream")}
			case 3:
				x.now = x.now.Add(time.Duration(rapid.IntRange(1, 8).Draw(t, "time")) * 500 * time.Millisecond)
			default:
				in = drawSnapshot(t, rapid.SampledFrom(Parts()).Draw(t, "part"))
			}
			var inputs []Input
			if in != nil {
				inputs = append(inputs, in)
			}
			for id := range next {
				inputs = append(inputs, Ready{id})
			}
			x.step(inputs...)
			m.step(x.now, in)
			x.c.verify(t)
			collect, said := x.summary()
			if collect != m.collect || fmt.Sprint(said) != fmt.Sprint(m.said) {
				t.Fatalf("%+v at %v:\n%b %v\nwant\n%b %v", in, time.Duration(x.now), collect, said, m.collect, m.said)
			}
		}
	})
}

// TestSlowReaders: whoever reads little at a time has, once nothing waits, what there is;
// and what waits is never more than the leaves that there are, and those that it has.
func TestSlowReaders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newTrial(Config{Batch: 2})
		view := map[string]string{}
		synced := false
		take := func() {
			for _, b := range x.out.Batches {
				for _, e := range b.Entries {
					switch e.Kind {
					case Update:
						view[e.Name] = e.Value.String()
					case Delete:
						if _, has := view[e.Name]; !has {
							t.Fatalf("%s is deleted, and was not sent", e.Name)
						}
						delete(view, e.Name)
					case Sync:
						synced = true
					}
				}
			}
		}
		p, err := openconfig.ParsePath(rapid.SampledFrom(trialPaths).Draw(t, "path"))
		if err != nil {
			t.Fatal(err)
		}
		x.step(Open{Stream: 1, Subscriptions: []Subscription{{Path: p, Trigger: OnChange}}})
		for _, part := range Parts() {
			x.step(drawSnapshot(t, part))
			take()
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "ready") {
				x.step(Ready{1})
			} else {
				x.step(drawSnapshot(t, rapid.SampledFrom(Parts()).Draw(t, "part")))
			}
			take()
			x.c.verify(t)
			if n := x.c.Counters(); n.Waiting > n.Leaves+len(view)+1 {
				t.Fatalf("%d wait of %d leaves, %d sent", n.Waiting, n.Leaves, len(view))
			}
		}
		for x.c.Counters().Waiting > 0 {
			x.step(Ready{1})
			take()
		}
		want := map[string]string{}
		for name, l := range x.c.cache.leaves {
			if p.Covers(l.path) {
				want[name] = l.value.String()
			}
		}
		if !maps.Equal(want, view) || !synced {
			t.Fatalf("%v, want %v; synced: %v", view, want, synced)
		}
	})
}

// TestWalk: the tree finds what Covers selects, each once.
func TestWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newTrial(Config{})
		for _, part := range Parts() {
			x.step(drawSnapshot(t, part))
		}
		elems := []string{"interfaces", "interface", "interface[name=a]", "interface[name=*]", "interface[name=c]", "state", "counters", "system", "*", "...", "mtu", "hostname"}
		text := "/" + strings.Join(rapid.SliceOfN(rapid.SampledFrom(elems), 0, 6).Draw(t, "path"), "/")
		p, err := openconfig.ParsePath(text)
		if err != nil {
			t.Fatal(err)
		}
		var got, want []string
		x.c.cache.walk(p, func(l *leaf) { got = append(got, l.name) })
		for name, l := range x.c.cache.leaves {
			if p.Covers(l.path) {
				want = append(want, name)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%s: %v, want %v", text, got, want)
		}
	})
}
