package member

import (
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// FuzzStep: whatever comes, in whatever order, the core keeps its view and its
// history apart, its ring in order, and wants its next step in the future; and where nodes
// prove what they say, it believes nothing else.
func FuzzStep(f *testing.F) {
	f.Add(false, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
	f.Add(true, []byte{2, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 1, 16, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, proofs bool, script []byte) {
		r := newRig(t, func(c *Config) {
			if c.Discovery = DefaultSettings().Discovery; proofs {
				c.Identity = keys{idOf("a"), 5}
			}
		})
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
			if mutate(&m, r, next); proofs {
				prove(&m, r, next)
			}
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
			if invariants(t, r); proofs {
				believed(t, r)
			}
		}
	})
}

// prove has some of what a message says be signed by whom it is about.
func prove(m *Message, r *rig, next func() byte) {
	owner := func(i Index, incarnation uint64) keys {
		if next()%4 == 0 {
			return of("m", 1)
		}
		return keys{r.dir.ID(i), incarnation}
	}
	if i := m.From.Node; i != Nobody {
		k := owner(i, m.From.Version.Incarnation)
		m.Birth, m.From.Proof = k.Birth(), k.Sign(statement(saysMinor, uint64(m.From.Version.Minor)))
	}
	for i := range m.Alives {
		e := &m.Alives[i]
		e.Proof = owner(e.Node, e.Version.Incarnation).Sign(statement(saysMinor, uint64(e.Version.Minor)))
	}
	for i := range m.Leaves {
		m.Leaves[i].Proof = owner(m.Leaves[i].Node, m.Leaves[i].Version.Incarnation).Sign(m.Leaves[i].statement())
	}
	for i := range m.Suspicions {
		s := &m.Suspicions[i]
		reporter, _ := r.dir.Find(s.Reporter)
		s.Proof = owner(reporter, r.Version(reporter).Incarnation).Sign(r.Core.suspicion(s.Suspect, s.Version))
	}
	m.Births = slices.Clone(m.Births)
	for i := range m.Births {
		b := &m.Births[i]
		b.Node, b.Incarnation = r.index(string('a'+rune(next()%8))), uint64(next()%8)
		b.Record = owner(b.Node, b.Incarnation).Birth()
	}
}

// believed fails unless all that a core holds is proven.
func believed(t *testing.T, r *rig) {
	known := r.View()
	for _, h := range r.History(nil) {
		known = append(slices.Clone(known), h.Node)
	}
	for _, i := range known {
		b, v := r.births[i], r.Version(i)
		k := keys{r.dir.ID(i), v.Incarnation}
		if b == nil || b.incarnation != v.Incarnation || !slices.Equal(b.record, k.Birth()) {
			t.Fatalf("%s is at %v without a birth", r.name(i), v)
		}
		if r.Has(i) && v.Minor > 1 && *b.minor != *k.Sign(statement(saysMinor, uint64(v.Minor))) {
			t.Fatalf("%s is at %v without a signature", r.name(i), v)
		}
	}
	if len(r.births) != len(known) {
		t.Fatalf("%d births of %d nodes", len(r.births), len(known))
	}
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
