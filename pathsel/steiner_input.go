package pathsel

import (
	"math"

	"github.com/tributary-fabric/tributary/internal/planning/steiner"
	"github.com/tributary-fabric/tributary/topology"
)

// steinerInput is the part of a fabric that one request can use, as package steiner
// wants it: members by rank, then switches that reduce; of parallel links the
// best.
type steinerInput struct {
	nodes  []topology.NodeID
	limit  []int32
	ends   [][2]int32
	links  []topology.LinkID
	cost   []float64
	routes map[int32][]topology.LinkID // edges of several links, from ends[0] on
}

// steinerInput draws the fabric for a.
func (p *Planner) steinerInput(a asked) *steinerInput {
	s := &steinerInput{}
	place := make([]int32, p.graph.Switches())
	for _, m := range a.Members {
		s.add(m, 1)
	}
	for i := range place {
		place[i] = -1
		if n := p.graph.Switch(i); a.serves(n) && !a.crowds(n) {
			// The root may have no more; its choice sees to that.
			place[i] = s.add(n, int32(min(a.view.Capability(n).Children, math.MaxInt32-1)+1))
		}
	}
	at := func(n topology.NodeID) int32 {
		if p.graph.IsHost(n) {
			return p.rank[n]
		}
		return place[p.graph.SwitchIndex(n)]
	}
	best := newPlaces(len(s.nodes))
	for from, n := range s.nodes {
		best.clear()
		if !a.view.NodeUp(n) {
			continue
		}
		for _, l := range p.graph.Adjacent(n) {
			to := at(p.graph.Across(l, n))
			if to < 0 || int(to) <= from || !a.view.LinkUp(l) || a.excludesLink(l) || a.narrow(l) {
				continue
			}
			cost := p.linkCost(a, l)
			old, parallel := best.get(to)
			switch {
			case !parallel:
				best.set(to, int32(len(s.links)))
				s.ends, s.links, s.cost = append(s.ends, [2]int32{int32(from), to}), append(s.links, l), append(s.cost, cost)
			case cost < s.cost[old] || cost == s.cost[old] && a.lighter(l, s.links[old]):
				s.links[old], s.cost[old] = l, cost
			}
		}
	}
	if a.Forward {
		s.forward(p, a, at)
	}
	return s
}

func (s *steinerInput) add(n topology.NodeID, limit int32) int32 {
	s.nodes, s.limit = append(s.nodes, n), append(s.limit, limit)
	return int32(len(s.nodes) - 1)
}

// lighter decides between parallel links of one cost.
func (a *asked) lighter(x, y topology.LinkID) bool {
	if a.load.LinkTrees(x) != a.load.LinkTrees(y) {
		return a.load.LinkTrees(x) < a.load.LinkTrees(y)
	}
	return mix(a.hash, uint64(x)) < mix(a.hash, uint64(y))
}

// linkCost is what a link adds to a tree: a hop; by load its price and half
// that of each switch at its ends, which is exact for those that only pass on.
func (p *Planner) linkCost(a asked, l topology.LinkID) float64 {
	if a.by != LeastLoad {
		return 1
	}
	cost := a.load.linkPrice(a.view, l)
	for _, end := range p.graph.Link(l).Ends {
		if p.graph.IsSwitch(end.Node) {
			cost += a.switchPrice(end.Node) / 2
		}
	}
	return cost
}

// bySteiner returns the tree that package steiner finds, if it does.
func (p *Planner) bySteiner(a asked) (candidate, bool) {
	if len(a.Members) < 2 {
		return candidate{}, false
	}
	s := p.steinerInput(a)
	g, err := steiner.NewGraph(len(s.nodes), s.ends)
	if err != nil {
		return candidate{}, false
	}
	problem := steiner.Problem{Graph: g, Cost: s.cost, Limit: s.limit, Terminals: make([]int32, len(a.Members))}
	for rank := range a.Members {
		problem.Terminals[rank] = int32(rank)
	}
	found, err := steiner.Solve(problem, steiner.Options{Budget: p.cfg.Work})
	if err != nil {
		return candidate{}, false
	}
	w := newWiring(p, a, len(found.Edges)+1)
	for _, e := range found.Edges {
		links := s.routes[e]
		if links == nil {
			links = s.links[e : e+1]
		}
		w.join(s.nodes[s.ends[e][0]], links...)
	}
	root := w.centre()
	if root < 0 {
		return candidate{}, false
	}
	tree, ok := w.tree(root, make([]Leaf, len(a.Members)))
	if !ok {
		return candidate{}, false
	}
	c := p.candidate(a, tree, BySteiner)
	c.work = found.Work
	return c, true
}
