package pathsel

import (
	"fmt"
	"iter"
	"math/bits"
	"slices"

	"github.com/tributary-fabric/tributary/internal/ground/disjoint"
	"github.com/tributary-fabric/tributary/topology"
)

// Repaired is a tree that goes on after something on it broke.
type Repaired struct {
	Tree    Tree
	Figures Figures
	// Added are links that the tree did not have; Lost are those that it can no
	// longer use, topology.NoLink each that the graph has no more; Dropped are those
	// that could be used and lead to no member any more. All others are where they
	// were.
	Added, Lost, Dropped []topology.LinkID
	// Fresh: nothing was left to go on with, or what was left could not be
	// joined within the children that switches can serve; the tree is a new one.
	Fresh bool
}

// Against says how a repair compares with a fresh plan, in a sentence.
func (r Repaired) Against(fresh Plan) string {
	by := max(fresh.Criterion, FewestHops)
	said := fmt.Sprintf("%s added, %s lost, %s dropped", count(len(r.Added), "link"), count(len(r.Lost), "link"), count(len(r.Dropped), "link"))
	switch order := r.Figures.Compare(fresh.Figures, by); {
	case order < 0:
		return said + "; better than a fresh plan by " + fresh.Figures.lost(r.Figures, by)
	case order > 0:
		return said + "; behind a fresh plan by " + r.Figures.lost(fresh.Figures, by)
	}
	return said + "; as good as a fresh plan"
}

// Repair returns a tree for the members of req that keeps of old whatever can
// still be used and leads to a member: its root, too, if it still has two
// children. What is apart is joined by the fewest links that a nearest-first
// search finds (Mehlhorn 1988, from fragments in place of terminals). load must
// not count old itself. The errors are those of Plan.
func (p *Planner) Repair(view topology.View, load *Load, req Request, old Tree) (Repaired, error) {
	if err := p.enter(view, load, &req); err != nil {
		return Repaired{}, fmt.Errorf("repair tree: %w", err)
	}
	tree, ok := p.repaired(p.ask(view, load, &req), old)
	p.leave(&req)
	if !ok {
		req.Old = Tree{}
		plan, err := p.Plan(view, load, req)
		if err != nil {
			return Repaired{}, fmt.Errorf("repair tree: %w", err)
		}
		r := Repaired{Tree: plan.Tree, Figures: plan.Figures, Fresh: true}
		r.compare(view, old)
		return r, nil
	}
	r := Repaired{Tree: tree, Figures: p.Measure(view, load, req, tree)}
	r.compare(view, old)
	return r, nil
}

// repaired returns old repaired, if that can be.
func (p *Planner) repaired(a asked, old Tree) (Tree, bool) {
	m := p.repair(a, old)
	if m == nil || !m.join() || !m.finish() {
		return Tree{}, false
	}
	return m.result, true
}

// keepOld has a plan be the request's old tree, repaired, unless the new one is
// better by more than Config.Keep.
func (p *Planner) keepOld(a asked, plan *Plan) {
	if len(a.Old.Vertices) == 0 {
		return
	}
	tree, ok := p.repaired(a, a.Old)
	if !ok {
		if tree = a.Old; !p.intact(a, &tree) {
			return
		}
	}
	r := Repaired{Tree: tree, Figures: p.Measure(a.view, a.load, *a.Request, tree)}
	if p.outdone(&r.Figures, &plan.Figures, plan) {
		return
	}
	r.compare(a.view, a.Old)
	fresh := Rival{Root: plan.Tree.Root(), Method: plan.Method, Figures: plan.Figures, Lost: plan.Figures.lost(r.Figures, plan.Criterion)}
	if r.Figures.Compare(plan.Figures, plan.Criterion) > 0 {
		fresh.Lost = "what it would change: it is better by " + r.Figures.lost(plan.Figures, plan.Criterion)
	}
	against := r.Against(*plan)
	if !slices.EqualFunc(tree.Vertices, plan.Tree.Vertices, func(x, y Vertex) bool { return x == y }) {
		plan.Rivals = append([]Rival{fresh}, plan.Rivals...)
		plan.Rivals = plan.Rivals[:min(len(plan.Rivals), max(p.cfg.Rivals, 0))]
	}
	plan.Tree, plan.Figures, plan.Method, plan.Exact = tree, r.Figures, ByRepair, false
	plan.Reason = p.reason(plan) + "; the tree before, repaired: " + against
}

// intact reports whether a tree, be it one of routes, can go on as it is.
func (p *Planner) intact(a asked, t *Tree) bool {
	if t.Validate(a.view) != nil || len(t.Leaves) != len(a.Members) || len(t.Routes) > 0 && !a.Forward && !a.Slim {
		return false
	}
	for rank, l := range t.Leaves {
		if l.Host != a.Members[rank] {
			return false
		}
	}
	for i, children := range t.AllChildren() {
		n := t.Vertices[i].Switch
		if !a.serves(n) || len(children) > a.view.Capability(n).Children {
			return false
		}
	}
	for l := range t.Links() {
		if a.excludesLink(l) {
			return false
		}
	}
	for _, r := range t.Routes {
		if !p.pinned(a.view, t.childOf(r), r.Links) {
			return false
		}
	}
	return !slices.ContainsFunc(t.Forwarders(p.graph), func(n topology.NodeID) bool { return a.excluded[n] })
}

// outdone reports whether a repaired tree is worse than a new one by more than
// Config.Keep, or has a switch that is slow beside those of the new one.
func (p *Planner) outdone(repaired, fresh *Figures, plan *Plan) bool {
	most, by := 1+max(p.cfg.Keep, 0), plan.Criterion
	if (plan.Default || by != LeastLoad && by != MostCapable) && float64(fresh.Speed) > slack*float64(repaired.Speed) {
		return true
	}
	return repaired.value(by) > most*fresh.value(by) || float64(repaired.Hops) > most*float64(fresh.Hops) ||
		float64(repaired.Depth) > most*float64(fresh.Depth) || float64(repaired.Latency) > most*float64(fresh.Latency)
}

// compare sorts the links of both trees. Members mostly keep theirs, so that
// only the others are looked up.
func (r *Repaired) compare(view topology.View, old Tree) {
	had, has := ownLinks(view.Graph(), old, r.Tree), ownLinks(view.Graph(), r.Tree, old)
	for i, v := range old.Vertices {
		if i > 0 && v.Up == topology.NoLink {
			r.Lost = append(r.Lost, topology.NoLink)
		}
	}
	for _, l := range old.Leaves {
		if l.Link == topology.NoLink {
			r.Lost = append(r.Lost, topology.NoLink)
		}
	}
	for l := range had.all() {
		switch {
		case has.on(l):
		case view.Usable(l):
			r.Dropped = append(r.Dropped, l)
		default:
			r.Lost = append(r.Lost, l)
		}
	}
	for l := range has.all() {
		if !had.on(l) {
			r.Added = append(r.Added, l)
		}
	}
}

// bitset is a set of links.
type bitset []uint64

func (b bitset) on(l topology.LinkID) bool { return b[l/64]>>(l%64)&1 == 1 }

// add adds l; topology.NoLink stands for none.
func (b bitset) add(l topology.LinkID) {
	if l != topology.NoLink {
		b[l/64] |= 1 << (l % 64)
	}
}

// all iterates over the links in ascending order.
func (b bitset) all() iter.Seq[topology.LinkID] {
	return func(yield func(topology.LinkID) bool) {
		for i, word := range b {
			for ; word != 0; word &= word - 1 {
				if !yield(topology.LinkID(64*i + bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}

// ownLinks returns the links of t without those of members that have the same
// in other.
func ownLinks(g *topology.Graph, t, other Tree) bitset {
	b := make(bitset, g.Links()/64+1)
	for _, v := range t.Vertices {
		b.add(v.Up)
	}
	for rank, l := range t.Leaves {
		if rank >= len(other.Leaves) || other.Leaves[rank].Link != l.Link {
			b.add(l.Link)
		}
	}
	for _, route := range t.Routes {
		for _, l := range route.Links {
			b.add(l)
		}
	}
	return b
}

// repairing is a tree that is being repaired. Its nodes are first the switches
// that are kept, then what joins them; of detached members, too, each has one.
type repairing struct {
	p *Planner
	asked
	old     Tree
	anyDown bool          // a link is down
	alive   []bool        // by old vertex
	now     []int32       // by old vertex that is alive: its node
	leaves  []bool        // by rank: it keeps its leaf
	nodes   []joint       // the switches and detached members
	place   []int32       // by switch: its node; -1
	sets    disjoint.Sets // of nodes: fragments
	edges   []bond

	front, next []int32
	cross       []crossing
	result      Tree
}

// joint is a node of a repairing.
type joint struct {
	node   topology.NodeID
	away   int32 // of its fragment
	up     int32 // the node that it was reached from; -1
	link   topology.LinkID
	region int32 // the node of its fragment that the search began at
	on     bool  // it is on the tree
	joins  int32 // crossings that lead over it
	hash   uint64
}

// crossing is a link between the regions of two fragments.
type crossing struct {
	bond
	length int32
	via    int32 // the end that is farther from its fragment
}

// repair finds what is left of old; nil if nothing is that can be kept.
func (p *Planner) repair(a asked, old Tree) *repairing {
	if len(old.Leaves) != len(a.Members) || len(old.Vertices) == 0 || len(old.Routes) > 0 || a.Forward {
		return nil
	}
	m := &repairing{p: p, asked: a, old: old, alive: make([]bool, len(old.Vertices)), leaves: make([]bool, len(old.Leaves))}
	m.place = make([]int32, p.graph.Switches())
	for i := range m.place {
		m.place[i] = -1
	}
	for range a.view.LinksDown() {
		m.anyDown = true
		break
	}
	for n := range a.view.NodesDown() {
		if p.graph.IsHost(n) && p.rank[n] >= 0 {
			return nil
		}
	}
	below := make([]int32, len(old.Vertices)) // edges to children that stand
	linked := make([]bool, len(old.Vertices))
	for i, v := range old.Vertices {
		m.alive[i] = p.graph.IsSwitch(v.Switch) && a.serves(v.Switch)
		linked[i] = i > 0 && m.alive[i] && m.alive[v.Parent] && m.open(v.Up)
		if linked[i] {
			below[v.Parent]++
		}
	}
	for rank, l := range old.Leaves {
		if l.Host != a.Members[rank] {
			return nil
		}
		m.leaves[rank] = m.alive[l.Vertex] && m.open(l.Link)
		if m.leaves[rank] {
			below[l.Vertex]++
		}
	}
	m.prune(below, linked)
	m.number(linked)
	return m
}

// open reports whether a link can be on the tree.
func (m *repairing) open(l topology.LinkID) bool {
	return l != topology.NoLink && (!m.anyDown || m.view.LinkUp(l)) && !m.excludesLink(l)
}

// prune gives up switches that lead to no member any more, and those that have
// more children than they can serve now.
func (m *repairing) prune(below []int32, linked []bool) {
	for i := len(m.alive) - 1; i >= 0; i-- {
		v := m.old.Vertices[i]
		if !m.alive[i] || below[i] > 0 && int(below[i]) <= m.view.Capability(v.Switch).Children {
			continue
		}
		m.alive[i] = false
		if linked[i] {
			linked[i] = false
			below[v.Parent]--
		}
	}
	for i, v := range m.old.Vertices {
		linked[i] = linked[i] && m.alive[i] && m.alive[v.Parent]
	}
	for rank, l := range m.old.Leaves {
		m.leaves[rank] = m.leaves[rank] && m.alive[l.Vertex]
	}
}

// number makes nodes of what is kept, and of detached members.
func (m *repairing) number(linked []bool) {
	m.now = make([]int32, len(m.old.Vertices))
	for i, v := range m.old.Vertices {
		if m.alive[i] {
			m.now[i] = m.add(v.Switch)
			m.place[m.p.graph.SwitchIndex(v.Switch)] = m.now[i]
		}
	}
	for rank, kept := range m.leaves {
		if !kept {
			m.add(m.Members[rank])
		}
	}
	m.sets = disjoint.New(len(m.nodes))
	for i, v := range m.old.Vertices {
		if linked[i] {
			m.bind(bond{x: m.now[i], y: m.now[v.Parent], link: v.Up})
		}
	}
	for i := range m.nodes {
		m.nodes[i].region = m.sets.Find(int32(i))
	}
}

func (m *repairing) add(n topology.NodeID) int32 {
	i := int32(len(m.nodes))
	m.nodes = append(m.nodes, joint{node: n, up: -1, link: topology.NoLink, region: i, on: true, hash: mix(m.hash, uint64(n))})
	return i
}

// at returns the node of a switch, or less than zero.
func (m *repairing) at(n topology.NodeID) int32 { return m.place[m.p.graph.SwitchIndex(n)] }

// bind adds an edge, if it joins two fragments.
func (m *repairing) bind(b bond) {
	if m.sets.Join(m.nodes[b.x].region, m.nodes[b.y].region) {
		m.edges = append(m.edges, b)
	}
}

// join searches from all fragments at once, a link further each time, and joins
// what has met, the nearest first. It reports whether one is left.
func (m *repairing) join() bool {
	apart := m.sets.Count()
	if len(m.nodes) == 0 {
		return false
	}
	for i := range m.nodes {
		m.front = append(m.front, int32(i))
	}
	for away := int32(0); apart > 1; away++ {
		if len(m.front) == 0 {
			return false
		}
		m.next = m.next[:0]
		for _, i := range m.front {
			m.look(i)
		}
		m.front, m.next = m.next, m.front
		apart -= m.meet(2*away + 2)
	}
	return true
}

// look goes over the links of one node.
func (m *repairing) look(i int32) {
	g := m.p.graph
	at := m.nodes[i]
	for _, l := range g.Adjacent(at.node) {
		n := g.Across(l, at.node)
		if !g.IsSwitch(n) {
			continue
		}
		j := m.at(n)
		if j == -2 || !m.open(l) {
			continue
		}
		if j == -1 {
			if !m.serves(n) {
				m.place[g.SwitchIndex(n)] = -2
				continue
			}
			m.place[g.SwitchIndex(n)] = int32(len(m.nodes))
			m.next = append(m.next, int32(len(m.nodes)))
			m.nodes = append(m.nodes, joint{
				node: n, away: at.away + 1, up: i, link: l, region: at.region, hash: mix(m.hash, uint64(n)),
			})
			continue
		}
		other := &m.nodes[j]
		if other.region != at.region && m.sets.Find(other.region) != m.sets.Find(at.region) {
			c := crossing{bond{x: i, y: j, link: l}, at.away + other.away + 1, j}
			if at.away > other.away {
				c.via = i
			}
			m.nodes[c.via].joins++
			m.cross = append(m.cross, c)
		}
	}
}
