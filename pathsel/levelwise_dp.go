package pathsel

import (
	"cmp"
	"math"
	"slices"

	"github.com/tributary-fabric/tributary/topology"
)

// levelwise finds the best tree of a fabric in layers that has one switch in every
// component of every layer below the top; see docs/planning.md. Of a
// switch it keeps two costs, the first deciding before the second: by latency
// the time, by bandwidth and capability what is worst on the way; and the sum of
// the prices, or of the present use.
type levelwise struct {
	p *Planner
	asked

	round   int32
	states  []levelState // by switch
	seen    []int32      // by component: the round in which it was met
	at      []int32      // by component: its place in its level
	levels  []level
	touched []topology.NodeID
	serial  int32
	worst   bool // the first cost is what is worst on the way; then only the sum counts
	found   []int32
	best    []way // by component of one level
}

// levelState is what a switch is known to be in this round.
type levelState struct {
	round     int32
	barred    bool
	serves    bool // all members of its component, on a tree of that cost
	children  int32
	last      int32 // the component of which now is the best way; the descent that it is on
	vertex    int32 // of that descent
	cost, way pair
}

// pair is a cost.
type pair struct{ first, sum float64 }

func (x pair) compare(y pair) int {
	return cmp.Or(cmp.Compare(x.first, y.first), cmp.Compare(x.sum, y.sum))
}

// way is a link from a switch to the one beneath it that serves a component.
type way struct {
	link topology.LinkID
	to   topology.NodeID
	cost pair
}

// level is the components of one layer that have members, in the order of their
// lowest ranks, and the switches that serve each.
type level struct {
	comps   []component
	serving []topology.NodeID
}

type component struct {
	id     int32
	parts  int32 // components beneath
	lo, hi int32 // of serving
}

// byLevels returns the best tree by a.by of those with the fewest hops, and
// whether the method gives one.
func (p *Planner) byLevels(a asked) (candidate, bool) {
	s := &p.levelwise
	s.p, s.asked = p, a
	if s.states == nil {
		s.states = make([]levelState, p.graph.Switches())
		s.seen, s.at = make([]int32, len(p.layers.above)), make([]int32, len(p.layers.above))
	}
	s.worst = a.by == WidestLink || a.by == MostCapable
	if !s.climb() {
		return candidate{}, false
	}
	if !s.worst {
		return s.choose(), true
	}
	// Of what is worst on the way the best is known; now the rest is chosen
	// among the trees that keep to it.
	before := s.choose()
	if a.by == WidestLink {
		s.floor = before.figures.Bandwidth
	} else {
		s.ceiling = before.figures.Share
	}
	s.worst = false
	if !s.climb() {
		return candidate{}, false
	}
	c := s.choose()
	c.outdo(before, p.cfg.Rivals, a.by)
	return c, true
}

// fastest returns the pace of the slowest switch of the tree with the fewest hops where
// that is the highest; 0: there is no such tree.
func (s *levelwise) fastest(p *Planner, a asked) float64 {
	a.by = bySpeed
	s.p, s.asked, s.worst = p, a, true
	if !s.climb() {
		return 0
	}
	worst := math.Inf(1)
	for _, v := range s.top().serving {
		worst = min(worst, s.states[p.graph.SwitchIndex(v)].cost.first)
	}
	return -worst
}

// outdo takes another candidate and its rivals among c's.
func (c *candidate) outdo(other candidate, most int, by Criterion) {
	more := append([]Rival{{
		Root: other.tree.Root(), Method: other.method, Figures: other.figures, Lost: other.figures.lost(c.figures, by),
	}}, other.rivals...)
	for _, r := range more {
		known := func(o Rival) bool { return o.Root == r.Root }
		if r.Root != c.tree.Root() && !slices.ContainsFunc(c.rivals, known) {
			r.Lost = r.Figures.lost(c.figures, by)
			c.rivals = append(c.rivals, r)
		}
	}
	slices.SortStableFunc(c.rivals, func(x, y Rival) int { return x.Figures.Compare(y.Figures, by) })
	c.rivals = c.rivals[:min(len(c.rivals), max(most, 0))]
}

// choose makes the candidate of the best root and its rivals.
func (s *levelwise) choose() candidate {
	roots := s.roots(1 + max(s.p.cfg.Rivals, 0))
	c := candidate{method: ByLevels, tried: len(s.top().serving)}
	c.exact = s.by != LeastLatency || s.p.layers.alike
	c.tree = s.descend(roots[0])
	c.figures = s.p.Measure(s.view, s.load, *s.Request, c.tree)
	c.hash = mix(s.hash, uint64(roots[0]))
	for _, root := range roots[1:] {
		tree := s.descend(root)
		f := s.p.Measure(s.view, s.load, *s.Request, tree)
		c.rivals = append(c.rivals, Rival{Root: root, Method: ByLevels, Figures: f, Lost: f.lost(c.figures, s.by)})
	}
	return c
}

func (s *levelwise) top() *level { return &s.levels[len(s.levels)-1] }

// climb finds the costs of all switches above the members, up to the first
// layer of which one component holds all, and reports whether a switch there
// serves them.
func (s *levelwise) climb() bool {
	s.round++
	s.serial = 0
	s.levels = append(s.levels[:0], level{})
	s.levels[0].comps = s.levels[0].comps[:0]
	for _, m := range s.Members {
		if !s.view.NodeUp(m) {
			return false
		}
		s.levels[0].comps = append(s.levels[0].comps, component{id: int32(m)})
	}
	for at := 0; at == 0 || len(s.levels[at].comps) > 1; at++ {
		if at == s.p.layers.top || !s.raise(at) {
			return false
		}
	}
	return true
}

// raise finds what serves the components of the next level.
func (s *levelwise) raise(at int) bool {
	g := s.p.graph
	var next level
	s.touched = s.touched[:0]
	for i := range s.levels[at].comps {
		c := &s.levels[at].comps[i]
		above := s.p.layers.above[c.id]
		if above < 0 {
			return false
		}
		if s.seen[above] != s.round {
			s.seen[above], s.at[above] = s.round, int32(len(next.comps))
			next.comps = append(next.comps, component{id: above})
		}
		next.comps[s.at[above]].parts++
		s.serial++
		if at == 0 {
			s.spread(s.Members[i], pair{first: s.start()})
			continue
		}
		for _, u := range s.levels[at].serving[c.lo:c.hi] {
			s.spread(u, s.states[g.SwitchIndex(u)].cost)
		}
	}
	s.levels = append(s.levels, next)
	return s.settle(&s.levels[at+1])
}

// start is the first cost of a member.
func (s *levelwise) start() float64 {
	if s.worst {
		return math.Inf(-1)
	}
	return 0
}

// spread offers the switches above u a way to it.
func (s *levelwise) spread(u topology.NodeID, cost pair) {
	g := s.p.graph
	layer := g.Layer(u)
	for _, l := range g.Adjacent(u) {
		v := g.Across(l, u)
		if g.Layer(v) < layer {
			continue
		}
		c := s.levelState(v)
		if c.barred || !s.open(l) {
			continue
		}
		offer := s.over(l, cost)
		if c.last != s.serial {
			if c.children == 0 {
				s.touched = append(s.touched, v)
			}
			c.fold()
			c.last, c.way = s.serial, offer
			c.children++
		} else if offer.compare(c.way) < 0 {
			c.way = offer
		}
	}
}

// fold adds the best way to the last component to what v costs.
func (c *levelState) fold() {
	if c.children > 0 {
		c.cost.first = math.Max(c.cost.first, c.way.first)
		c.cost.sum += c.way.sum
	}
}

// levelState returns what is known of a switch, which is looked at first here.
func (s *levelwise) levelState(v topology.NodeID) *levelState {
	c := &s.states[s.p.graph.SwitchIndex(v)]
	if c.round != s.round {
		*c = levelState{round: s.round, barred: !s.serves(v), cost: pair{first: math.Inf(-1)}}
	}
	return c
}

// open reports whether a link can be on the tree.
func (s *levelwise) open(l topology.LinkID) bool {
	return s.view.LinkUp(l) && !s.excludesLink(l) &&
		(s.floor == 0 || width(s.view, s.load, l, s.p.graph.Link(l).LinkSpec) >= s.floor)
}

// over returns what it costs to reach over l what costs so much beneath.
func (s *levelwise) over(l topology.LinkID, cost pair) pair {
	switch s.by {
	case LeastLatency:
		cost.first += float64(s.p.latency(l) + s.p.cfg.Model.SwitchHop)
	case WidestLink:
		if !s.worst {
			break
		}
		cost.first = math.Max(cost.first, -float64(width(s.view, s.load, l, s.p.graph.Link(l).LinkSpec)))
	case LeastLoad:
		cost.sum += s.load.linkPrice(s.view, l)
		return cost
	}
	cost.sum += float64(s.load.LinkTrees(l))
	return cost
}

// settle sorts the switches that serve whole components to these, and reports
// whether every component has one.
func (s *levelwise) settle(next *level) bool {
	kept := s.touched[:0]
	for _, v := range s.touched {
		c := &s.states[s.p.graph.SwitchIndex(v)]
		comp := &next.comps[s.at[s.p.layers.own[v]]]
		capability := s.view.Capability(v)
		if c.children != comp.parts || int(c.children) > capability.Children {
			continue
		}
		c.fold()
		if s.by == LeastLoad {
			c.cost.sum += s.switchPrice(v)
		} else {
			c.cost.sum += float64(s.load.SwitchTrees(v))
		}
		if s.by == bySpeed {
			c.cost.first = math.Max(c.cost.first, -s.pace(v))
		}
		if s.by == MostCapable {
			gives := share(capability, s.load.UsedSlots(v), s.Request, int(c.children))
			if s.worst {
				c.cost.first = math.Max(c.cost.first, gives)
			}
			if s.ceiling > 0 && gives > s.ceiling {
				continue
			}
		}
		c.serves = true
		comp.hi++
		kept = append(kept, v)
	}
	total := int32(0)
	for i := range next.comps {
		comp := &next.comps[i]
		if comp.hi == 0 {
			return false
		}
		comp.lo, comp.hi, total = total, total, total+comp.hi
	}
	next.serving = make([]topology.NodeID, total)
	for _, v := range kept {
		comp := &next.comps[s.at[s.p.layers.own[v]]]
		next.serving[comp.hi] = v
		comp.hi++
	}
	return true
}

// roots returns the best n roots, or as many as there are.
func (s *levelwise) roots(n int) []topology.NodeID {
	type ranked struct {
		cost pair
		hash uint64
		root topology.NodeID
	}
	before := func(x, y ranked) int {
		return cmp.Or(x.cost.compare(y.cost), cmp.Compare(x.hash, y.hash), cmp.Compare(x.root, y.root))
	}
	var best []ranked
	for _, v := range s.top().serving {
		r := ranked{s.states[s.p.graph.SwitchIndex(v)].cost, mix(s.hash, uint64(v)), v}
		at, _ := slices.BinarySearchFunc(best, r, before)
		if at < n {
			best = slices.Insert(best, at, r)
			best = best[:min(len(best), n)]
		}
	}
	roots := make([]topology.NodeID, len(best))
	for i, r := range best {
		roots[i] = r.root
	}
	return roots
}

// descend builds the tree of a root that serves all.
func (s *levelwise) descend(root topology.NodeID) Tree {
	t := Tree{
		Vertices: append(make([]Vertex, 0, 2*len(s.levels)), Vertex{Switch: root, Parent: -1, Up: topology.NoLink}),
		Leaves:   make([]Leaf, len(s.Members)),
	}
	first := 0
	for at := len(s.levels) - 1; at > 1; at-- {
		end := len(t.Vertices)
		s.best = slices.Grow(s.best[:0], len(s.levels[at-1].comps))[:len(s.levels[at-1].comps)]
		for i := range s.best {
			s.best[i].link = topology.NoLink
		}
		for i := first; i < end; i++ {
			s.beneath(t.Vertices[i].Switch, at)
			for _, part := range s.found {
				w := s.best[part]
				t.Vertices = append(t.Vertices, Vertex{Switch: w.to, Parent: int32(i), Up: w.link})
			}
		}
		first = end
	}
	s.attach(&t, first)
	return t
}

// attach hangs the members below the switches of the lowest layer, which are the
// vertices from first on. It goes over the links of members: switches have many
// that lead to others.
func (s *levelwise) attach(t *Tree, first int) {
	g := s.p.graph
	s.serial++
	for i := first; i < len(t.Vertices); i++ {
		c := &s.states[g.SwitchIndex(t.Vertices[i].Switch)]
		c.last, c.vertex = s.serial, int32(i)
	}
	for rank, m := range s.Members {
		best := way{link: topology.NoLink}
		for _, l := range g.Adjacent(m) {
			c := &s.states[g.SwitchIndex(g.Across(l, m))]
			if c.round != s.round || c.last != s.serial || !s.open(l) {
				continue
			}
			w := way{link: l, to: m, cost: s.over(l, pair{first: s.start()})}
			if best.link == topology.NoLink || s.prefers(w, best) {
				best = w
				t.Leaves[rank] = Leaf{Host: m, Vertex: c.vertex, Link: l}
			}
		}
	}
}

// beneath fills found with the components beneath v, and best with the best way
// to each.
func (s *levelwise) beneath(v topology.NodeID, at int) {
	g := s.p.graph
	s.found = s.found[:0]
	for _, l := range g.Adjacent(v) {
		u := g.Across(l, v)
		if g.Layer(u) != at-1 {
			continue
		}
		c := &s.states[g.SwitchIndex(u)]
		if c.round != s.round || !c.serves || !s.open(l) {
			continue
		}
		part := s.at[s.p.layers.own[u]]
		w := way{link: l, to: u, cost: s.over(l, c.cost)}
		if s.best[part].link == topology.NoLink {
			s.found = append(s.found, part)
			s.best[part] = w
		} else if s.prefers(w, s.best[part]) {
			s.best[part] = w
		}
	}
	slices.Sort(s.found)
}

// bytes returns the memory that is kept for the next plan.
func (s *levelwise) bytes() int {
	const levelStateBytes, wayBytes = 56, 24
	return levelStateBytes*cap(s.states) + 4*(cap(s.seen)+cap(s.at)+cap(s.touched)+cap(s.found)) + wayBytes*cap(s.best)
}

// prefers decides between two ways to one component.
func (s *levelwise) prefers(x, y way) bool {
	return cmp.Or(x.cost.compare(y.cost),
		cmp.Compare(mix(s.hash, uint64(x.to)), mix(s.hash, uint64(y.to))),
		cmp.Compare(mix(s.hash, uint64(x.link)), mix(s.hash, uint64(y.link)))) < 0
}
