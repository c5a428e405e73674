package epoch

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/ranktree"
)

// A group is the agreement of n members over host connections that break, with
// members that hold results as numbers do: what one gets is reported by the group,
// as a tree would. Not every member is a sink of every number. The group sees
// everything and judges every decision.
type group struct {
	t      *rapid.T
	kinds  uint64 // of the numbers
	rng    *rand.Rand
	nodes  []*node
	edges  []*edge
	first  uint32
	values map[uint32]byte     // the result of a number: made once
	flying map[[2]uint32]bool  // epoch, number: all have contributed
	given  map[uint32][]uint32 // offers given, by member
	taken  map[uint32]bool     // offers withdrawn from any member
	steps  int
	serial byte
}

// sink reports whether a member gets the result of a number, and empty whether it
// has no data: numbers are those of allreduces, reductions, broadcasts, barriers,
// and operations whose result some, or all, do not want.
func (g *group) sink(rank, n uint32) bool {
	r := rand.New(rand.NewPCG(g.kinds, uint64(n)))
	kind, root := r.IntN(6), uint32(r.IntN(len(g.nodes)))
	switch kind {
	case 0, 1:
		return true
	case 2:
		return rank == root
	case 3:
		return rank != root
	case 4:
		return false
	}
	return r.Uint64()>>rank&1 != 0
}

func (g *group) empty(n uint32) bool { return rand.New(rand.NewPCG(g.kinds, uint64(n))).IntN(6) == 0 }

// source reports whether a member has the data of a number without being a sink.
func (g *group) source(rank, n uint32) bool {
	return rand.New(rand.NewPCG(g.kinds, uint64(n))).IntN(6) == 3 && !g.sink(rank, n)
}

// node is one member.
type node struct {
	g         *group
	rank      uint32
	c         *Core
	out       Output
	edges     map[uint32]*edge
	frozen    bool
	have      map[uint32]byte // results
	awaits    map[uint32]bool
	base      uint32 // of the last decision
	held      wire.Numbers
	entered   []uint32
	last      bool
	ended     *wire.Fail
	gone      bool
	forgotten uint32 // all before it is; 0: nothing
}

// edge is a host connection between a parent (side 0) and a child (side 1).
type edge struct {
	ranks [2]uint32
	open  [2]bool
	queue [2][][]byte // to that side; nil means: the connection is new
}

func newGroup(t *rapid.T) *group {
	g := &group{
		t: t, rng: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3)), first: 1<<32 - 9,
		kinds: rapid.Uint64().Draw(t, "kinds"), values: map[uint32]byte{}, flying: map[[2]uint32]bool{}, given: map[uint32][]uint32{}, taken: map[uint32]bool{},
	}
	size := rapid.IntRange(1, 9).Draw(t, "members")
	shape := ranktree.KNomial(size, rapid.IntRange(2, 4).Draw(t, "radix"))
	for r := range size {
		m := &node{g: g, rank: uint32(r), edges: map[uint32]*edge{}, have: map[uint32]byte{}, awaits: map[uint32]bool{}, base: g.first}
		cfg := Config{Rank: m.rank, Parent: NoParent, Window: window}
		for _, c := range shape.Children(r) {
			cfg.Children = append(cfg.Children, uint32(c))
		}
		if p, ok := shape.Parent(r); ok {
			cfg.Parent = p
			e := &edge{ranks: [2]uint32{uint32(p), m.rank}, queue: [2][][]byte{{nil}, {nil}}}
			g.edges = append(g.edges, e)
			m.edges[uint32(p)], g.nodes[p].edges[m.rank] = e, e
		}
		var err error
		if m.c, err = New(cfg, 1, m); err != nil {
			t.Fatal(err)
		}
		g.nodes = append(g.nodes, m)
	}
	return g
}

// The side of the member.

func (m *node) oldest() uint32 {
	n := m.base
	for m.done(n) {
		n++
	}
	return n
}

func (m *node) done(n uint32) bool { _, ok := m.have[n]; return ok }

func (m *node) Freeze() session.Report {
	m.frozen = true
	r := session.Report{Base: m.oldest()}
	from := r.Base - window
	r.Held.Init(from, 2*window)
	r.Lack.Init(from, 2*window)
	for n := from; n != from+2*window; n++ {
		switch {
		case !m.g.sink(m.rank, n):
		case m.done(n):
			r.Held.Set(n)
		case !wire.Newer(r.Base, n) && !m.g.empty(n):
			r.Lack.Set(n)
		}
	}
	return r
}

func (m *node) Enter(_ core.Time, epoch uint32, link *session.Link, d session.Decision, _ string) error {
	switch {
	case (link != nil) != (epoch%2 == 0):
		m.g.t.Fatalf("rank %d enters epoch %d with link %v", m.rank, epoch, link)
	case !m.frozen:
		m.g.t.Fatalf("rank %d enters epoch %d and was not frozen", m.rank, epoch)
	case wire.Newer(d.Base, m.oldest()):
		m.g.t.Fatalf("rank %d enters epoch %d at %d and lacks %d", m.rank, epoch, d.Base, m.oldest())
	}
	for _, q := range m.g.nodes {
		if link != nil && !slices.Contains(m.g.given[q.rank], epoch) {
			m.g.t.Fatalf("rank %d enters epoch %d, which rank %d was not offered", m.rank, epoch, q.rank)
		}
	}
	m.frozen, m.base, m.held = false, d.Base, d.Held
	m.awaits = map[uint32]bool{}
	for n := d.Base; n != d.Base+window; n++ {
		held, sink := d.Held.Has(n), m.g.sink(m.rank, n)
		switch {
		case held && !m.done(n) && sink && !m.g.empty(n):
			m.awaits[n] = true
		case held && !m.done(n):
			m.have[n] = m.g.values[n]
		case !held && m.done(n) && sink:
			m.g.t.Fatalf("rank %d holds %d, which is to be reduced again in epoch %d", m.rank, n, epoch)
		case !held && m.done(n):
			delete(m.have, n)
		}
	}
	m.entered = append(m.entered, epoch)
	return nil
}

// Forget checks that nobody lacks what is forgotten, nor ever will.
func (m *node) Forget(n uint32) {
	for _, q := range m.g.nodes {
		if wire.Newer(n, q.oldest()) {
			m.g.t.Fatalf("rank %d forgets all before %d, and rank %d lacks %d", m.rank, n, q.rank, q.oldest())
		}
	}
	m.forgotten = n
}

func (m *node) Kept(n uint32) ([]byte, int8, bool) {
	if m.forgotten != 0 && wire.Newer(m.forgotten, n) {
		return nil, 0, false
	}
	v, ok := m.have[n]
	return []byte{v}, -int8(v), ok && !m.g.empty(n) && (m.g.sink(m.rank, n) || m.g.source(m.rank, n))
}

func (m *node) Fill(_ core.Time, n uint32, data []byte, exponent int8) {
	if !m.awaits[n] {
		return
	}
	if data[0] != m.g.values[n] || exponent != -int8(data[0]) {
		m.g.t.Fatalf("rank %d gets %d with the exponent %d for %d, want %d", m.rank, data[0], exponent, n, m.g.values[n])
	}
	m.have[n] = data[0]
	delete(m.awaits, n)
}

func (m *node) FinishLast(core.Time) bool { return m.last }
func (m *node) End(f wire.Fail)           { m.ended = &f }

// step gives a member an input and takes what it puts out.
func (g *group) step(m *node, in Input) {
	m.out.Reset()
	m.c.Step(0, []Input{in}, &m.out)
	for _, s := range m.out.Sends {
		e := m.edges[s.To]
		if e == nil {
			g.t.Fatalf("rank %d sends a frame to rank %d", m.rank, s.To)
		}
		to := 0
		if e.ranks[1] == s.To {
			to = 1
		}
		if e.open[1-to] {
			e.queue[to] = append(e.queue[to], s.Frame)
		}
	}
	m.gone = m.gone || m.out.Gone
}

// deliver gives a member the oldest frame of one of its connections.
func (g *group) deliver() bool {
	var ready []int
	for i, e := range g.edges {
		for side := range 2 {
			if len(e.queue[side]) > 0 {
				ready = append(ready, 2*i+side)
			}
		}
	}
	if len(ready) == 0 {
		return false
	}
	g.steps++
	k := ready[g.rng.IntN(len(ready))]
	e, side := g.edges[k/2], k%2
	frame := e.queue[side][0]
	e.queue[side] = e.queue[side][1:]
	m, from := g.nodes[e.ranks[side]], e.ranks[1-side]
	if frame == nil {
		e.open[side] = true
		g.step(m, Input{Kind: Connected, From: from})
		return true
	}
	message, err := wire.ReadFrame(frame)
	if err != nil {
		g.t.Fatal(err)
	}
	g.step(m, Input{Kind: Message, From: from, Frame: message})
	return true
}

// breakEdge ends a connection: some of what is under way arrives.
func (g *group) breakEdge(e *edge) {
	for side := range 2 {
		keep := g.rng.IntN(len(e.queue[side]) + 1)
		q := slices.DeleteFunc(slices.Clone(e.queue[side][:keep]), func(f []byte) bool { return f == nil })
		e.queue[side], e.open[side] = append(q, nil), false
	}
}

// work lets the tree of an epoch go on: when all are in it, they contribute to
// a number in the window; and one that is not frozen gets a result.
func (g *group) work() {
	m := g.nodes[g.rng.IntN(len(g.nodes))]
	e := m.c.Epoch()
	n := m.oldest() + uint32(g.rng.IntN(window))
	if m.frozen || m.done(n) || m.awaits[n] {
		return
	}
	if key := [2]uint32{e, n}; !g.flying[key] {
		for _, q := range g.nodes {
			if q.frozen || q.c.Epoch() != e || wire.Newer(q.base, n) || q.held.Has(n) || !wire.Newer(q.oldest()+window, n) {
				return
			}
		}
		if _, before := g.values[n]; before && g.anyone(n) {
			g.t.Fatalf("number %d is reduced again in epoch %d, and its result is held", n, e)
		}
		g.serial++
		g.flying[key], g.values[n] = true, g.serial
	}
	m.have[n] = g.values[n]
}

func (g *group) anyone(n uint32) bool {
	return slices.ContainsFunc(g.nodes, func(m *node) bool { return m.done(n) && g.sink(m.rank, n) })
}

func (g *group) offer(m *node, epoch uint32) {
	g.given[m.rank] = append(g.given[m.rank], epoch)
	g.step(m, Input{Kind: Offered, Link: session.Link{Epoch: epoch, Window: window, Parent: netip.MustParseAddrPort("10.0.0.1:1")}})
}

func (g *group) latest() uint32 {
	e := uint32(0)
	for _, m := range g.nodes {
		e = max(e, m.c.Epoch())
	}
	return e
}

// disturb does one random thing.
func (g *group) disturb() {
	m := g.nodes[g.rng.IntN(len(g.nodes))]
	switch g.rng.IntN(14) {
	case 12:
		g.step(m, Input{Kind: Rested, Number: m.oldest()})
	case 13:
		for _, q := range g.nodes {
			g.step(q, Input{Kind: Rested, Number: q.oldest()})
		}
	case 0:
		if len(g.edges) > 0 {
			g.breakEdge(g.edges[g.rng.IntN(len(g.edges))])
		}
	case 1:
		if g.rng.IntN(3) == 0 {
			g.step(m, Input{Kind: Lost, Epoch: m.c.Epoch(), Reason: "test"})
		}
	case 2:
		g.offer(m, 2*(g.latest()/2+1)+2*uint32(g.rng.IntN(2)))
	case 3:
		if offers := g.given[m.rank]; len(offers) > 0 {
			g.step(m, Input{Kind: Withdrawn, Epoch: offers[g.rng.IntN(len(offers))]})
		}
	case 4, 5, 6, 7:
		g.work()
	default:
		g.deliver()
	}
}

// settle delivers all that is under way: every round ends.
func (g *group) settle() {
	for from := g.steps; g.deliver(); {
		if g.steps-from > 20000 {
			g.t.Fatalf("no end: %s", g)
		}
	}
	for _, m := range g.nodes {
		if m.c.phase == collecting || m.frozen || len(m.awaits) > 0 || m.c.alarm != nil || m.c.Epoch() != g.nodes[0].c.Epoch() {
			g.t.Fatalf("a round has not ended at rank %d: %s", m.rank, g)
		}
	}
}

func (g *group) String() string {
	text := ""
	for _, m := range g.nodes {
		text += fmt.Sprintf("; rank %d %v base=%d awaits=%v entered=%v ended=%v", m.rank, m.c, m.oldest(), m.awaits, m.entered, m.ended)
	}
	return text
}

func (g *group) disturbed(t *rapid.T) {
	for range rapid.IntRange(0, 1500).Draw(t, "steps") {
		g.disturb()
	}
}

// TestGroup: "Only an offer that all members hold is entered"; "a collection
// once begun always ends in a new epoch"; "a chunk whose result is held is never
// reduced again: its holder sends it to who lacks it"; "after a broken
// connection each side repeats its last message and what it was to send on".
// All members enter the same epochs in the same order.
func TestGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGroup(t)
		g.disturbed(t)
		g.settle()
		for _, m := range g.nodes {
			if !slices.Equal(m.entered, g.nodes[0].entered) {
				t.Fatalf("rank %d entered %v, rank 0 %v", m.rank, m.entered, g.nodes[0].entered)
			}
			for i := 1; i < len(m.entered); i++ {
				if m.entered[i] <= m.entered[i-1] {
					t.Fatalf("rank %d entered %v", m.rank, m.entered)
				}
			}
			if m.ended != nil {
				t.Fatalf("rank %d was notified %+v", m.rank, m.ended)
			}
		}
	})
}

// TestGroupEntersWhatAllHold: an offer above all others, given to each member at
// some moment of a disturbed run, is entered.
func TestGroupEntersWhatAllHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGroup(t)
		g.disturbed(t)
		const best = 1 << 20
		for _, r := range g.rng.Perm(len(g.nodes)) {
			g.offer(g.nodes[r], best)
			for range g.rng.IntN(30) {
				if len(g.edges) > 0 && g.rng.IntN(10) == 0 {
					g.breakEdge(g.edges[g.rng.IntN(len(g.edges))])
				}
				g.deliver()
			}
		}
		g.settle()
		if e := g.latest(); e != best {
			t.Fatalf("epoch %d: %s", e, g)
		}
	})
}

// TestGroupHeedsOneAlarm: one member finds the tree lost, and connections break.
func TestGroupHeedsOneAlarm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGroup(t)
		g.disturbed(t)
		g.settle()
		before := g.latest()
		m := g.nodes[g.rng.IntN(len(g.nodes))]
		for _, e := range g.edges {
			if g.rng.IntN(3) == 0 {
				g.breakEdge(e)
			}
		}
		g.step(m, Input{Kind: Lost, Epoch: before, Reason: "test"})
		for range rapid.IntRange(0, 50).Draw(t, "steps") {
			if len(g.edges) > 0 && g.rng.IntN(5) == 0 {
				g.breakEdge(g.edges[g.rng.IntN(len(g.edges))])
			}
			g.deliver()
		}
		g.settle()
		if g.latest() == before {
			t.Fatalf("still in epoch %d: %s", before, g)
		}
	})
}

// TestGroupLeaves: "going, it says goodbye to all; a goodbye counts as its
// report and completes the last barrier", also in the middle of a round.
func TestGroupLeaves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGroup(t)
		g.disturbed(t)
		g.settle()
		for _, m := range g.nodes {
			m.last = true
		}
		if rapid.Bool().Draw(t, "in a round") {
			m := g.nodes[g.rng.IntN(len(g.nodes))]
			g.step(m, Input{Kind: Lost, Epoch: m.c.Epoch()})
		}
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			g.deliver()
		}
		free := slices.DeleteFunc(slices.Clone(g.nodes), func(m *node) bool { return m.frozen })
		if len(free) == 0 {
			t.Skip("every member has reported: nobody gets a result")
		}
		g.step(free[g.rng.IntN(len(free))], Input{Kind: LastDone})
		for range rapid.IntRange(0, 50).Draw(t, "steps with breaks") {
			if len(g.edges) > 0 && g.rng.IntN(5) == 0 {
				g.breakEdge(g.edges[g.rng.IntN(len(g.edges))])
			}
			g.deliver()
		}
		for g.deliver() {
		}
		for _, m := range g.nodes {
			if m.c.phase != left || !m.gone || m.ended != nil {
				t.Fatalf("rank %d has not left: %s", m.rank, g)
			}
		}
	})
}

// TestGroupFails: "a member that gets an error notifies the lowest rank over its
// host connection, which reports all; the first reported stands, and the communicator
// has ended."
func TestGroupFails(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGroup(t)
		g.disturbed(t)
		s := wire.Signature{Collective: wire.Barrier}
		for range rapid.IntRange(1, 3).Draw(t, "failures") {
			m := g.nodes[g.rng.IntN(len(g.nodes))]
			body := wire.ErrorBody{Kind: wire.Mismatch, Rank: [2]uint32{m.rank, 9}, Says: [2]wire.Signature{s, s}}
			g.step(m, Input{Kind: Failed, Fail: wire.Fail{Kind: wire.FailDisagree, Rank: m.rank, Error: body}})
			for range g.rng.IntN(20) {
				g.disturb()
			}
		}
		for g.deliver() {
		}
		for _, m := range g.nodes {
			if m.ended == nil || *m.ended != *g.nodes[0].ended {
				t.Fatalf("rank %d was notified %+v, rank 0 %+v", m.rank, m.ended, g.nodes[0].ended)
			}
		}
	})
}
