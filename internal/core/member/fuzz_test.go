package member

import (
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// FuzzStep: whatever comes, in whatever order, the core keeps its view and its
// history apart, its ring in order, and wants its next step in the future.
func FuzzStep(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
	f.Fuzz(func(t *testing.T, script []byte) {
		r := newRig(t, func(c *Config) { c.Discovery = DefaultSettings().Discovery })
		all := messages(r.dir)
		next := func() byte {
			if len(script) == 0 {
				return 0
			}
			b := script[0]
			script = script[1:]
			return b
		}
		for len(script) > 0 && !r.stopped {
			in := Input{Kind: InputKind(next() % uint8(Attached+1)), Link: Link(next() % 16)}
			m := *all[int(next())%len(all)]
			mutate(&m, r, next)
			in.Message = &m
			in.Pulse = gossip.Pulse{Tag: uint32(next() % 16), Sequence: uint32(next()), Turns: next(), View: uint16(next())}
			if in.Kind == SetMonitors {
				in.Nodes = []Index{r.index(string('a' + rune(next()%26)))}
			}
			if in.Kind == Depart && next() != 0 {
				continue
			}
			if in.Kind == Accepted && r.Core.link(in.Link) != nil {
				continue // no number is used twice
			}
			r.at = r.at.Add(time.Duration(next()) * 3 * time.Millisecond)
			r.step(in)
			invariants(t, r)
		}
	})
}

// mutate changes who and what a message is about.
func mutate(m *Message, r *rig, next func() byte) {
	who := func() Index { return r.index(string('a' + rune(next()%8))) }
	v := func() Version { return ver(uint64(next()%8), uint32(next()%8)) }
	if m.From.Node != Nobody {
		m.From = Entry{who(), v(), nil}
	}
	m.Target, m.Nonce, m.About.Version = r.dir.Key(who()), uint32(next()), v()
	m.Alives, m.Leaves, m.Suspicions = slices.Clone(m.Alives), slices.Clone(m.Leaves), slices.Clone(m.Suspicions)
	for i := range m.Alives {
		m.Alives[i] = Entry{who(), v(), nil}
	}
	for i := range m.Leaves {
		m.Leaves[i] = Departure{Node: who(), Version: v()}
	}
	for i := range m.Suspicions {
		m.Suspicions[i] = Suspicion{r.dir.Key(who()), who(), v(), nil}
	}
}

func invariants(t *testing.T, r *rig) {
	if r.stopped {
		if r.Deadline() != core.Never {
			t.Fatal("a core that has stopped wants to be stepped")
		}
		return
	}
	if !r.Has(r.self) || r.Version(r.self) != r.Self().Version {
		t.Fatal("the core is not in its view as it is")
	}
	for _, h := range r.History(nil) {
		if r.Has(h.Node) {
			t.Fatalf("%s is in view and history", r.name(h.Node))
		}
	}
	for k, i := range r.View() {
		if k > 0 && r.dir.Key(r.View()[k-1]) >= r.dir.Key(i) {
			t.Fatal("the ring is not in order")
		}
	}
	for _, s := range r.Suspicions() {
		if !r.Has(s.Suspect) {
			t.Fatalf("%s is suspected and not in the view", r.name(s.Suspect))
		}
	}
	peers := map[Index]bool{}
	for _, p := range r.Neighbours(nil) {
		if peers[p.Node] || !r.Has(p.Node) {
			t.Fatalf("neighbour %s: twice %v, in the view %v", r.name(p.Node), peers[p.Node], r.Has(p.Node))
		}
		peers[p.Node] = true
	}
	if r.Deadline() <= r.at {
		r.step()
		if r.Deadline() < r.at {
			t.Fatal("a deadline in the past after a step")
		}
	}
}
