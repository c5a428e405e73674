package pathsel

import (
	"cmp"
	"errors"
	"slices"

	"github.com/tributary-fabric/tributary/topology"
)

// elsewhere returns the trees of a fabric without layers, or one that is too
// damaged for them, best first: by the shortest paths and by package steiner.
func (p *Planner) elsewhere(a asked) ([]candidate, error) {
	if a.by == WidestLink || a.by == MostCapable {
		p.narrowDown(&a)
	}
	var all []candidate
	c, err := p.byShortestPaths(a)
	if err == nil {
		all = append(all, c)
	} else if no := (*Refusal)(nil); !a.Forward && errors.As(err, &no) && no.Resource != Children {
		return nil, err // members are apart, by whatever method
	}
	if a.by == LeastLatency {
		if c, ok := p.byTime(a); ok {
			all = append(all, c)
		}
	} else if c, ok := p.bySteiner(a); ok {
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, err
	}
	slices.SortStableFunc(all, func(x, y candidate) int {
		return cmp.Or(x.figures.Compare(y.figures, a.by), cmp.Compare(x.hash, y.hash))
	})
	return all, nil
}

// byShortestPaths returns the tree that Select would choose.
func (p *Planner) byShortestPaths(a asked) (candidate, error) {
	f := newField(a)
	if refusal := f.attachMembers(); refusal != nil {
		return candidate{}, refusal
	}
	roots := f.rankRoots()
	if len(roots) == 0 {
		return candidate{}, f.refuseUnreached()
	}
	choice, err := f.chooseRoot(roots)
	if err != nil {
		return candidate{}, err
	}
	c := p.candidate(a, choice.Tree, ByShortestPaths)
	c.tried = choice.Examined
	for _, r := range choice.RunnersUp[:min(len(choice.RunnersUp), max(p.cfg.Rivals, 0))] {
		c.rivals = append(c.rivals, Rival{
			Root: r.Root, Method: ByShortestPaths, Lost: r.Lost,
			Figures: Figures{Hops: r.Cost.Hops, Depth: r.Cost.Depth, Use: r.Cost.Load},
		})
	}
	return c, nil
}

func (p *Planner) candidate(a asked, t Tree, by Method) candidate {
	return candidate{
		tree: t, method: by, figures: p.Measure(a.view, a.load, *a.Request, t), hash: mix(a.hash, uint64(t.Root())), tried: 1,
	}
}

// narrowDown sets the highest floor of bandwidth, or the lowest ceiling of
// shares, at which the members still hang together, by bisection of the values
// that there are.
func (p *Planner) narrowDown(a *asked) {
	var values []float64
	try := *a
	set := func(x float64) {
		if a.by == WidestLink {
			try.floor = int64(-x)
		} else {
			try.ceiling = x
		}
	}
	if a.by == WidestLink {
		for l, link := range p.graph.AllLinks() {
			if a.view.Usable(l) {
				values = append(values, -float64(width(a.view, a.load, l, link.LinkSpec)))
			}
		}
	} else {
		for i := range p.graph.Switches() {
			n := p.graph.Switch(i)
			values = append(values, share(a.view.Capability(n), a.load.UsedSlots(n), a.Request, 0))
		}
	}
	slices.Sort(values)
	values = slices.Compact(values)
	lo, hi := 0, len(values)-1 // the strictest that will do is not beyond hi
	for lo < hi {
		mid := (lo + hi) / 2
		set(values[mid])
		if p.holds(try) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if lo < len(values) {
		set(values[lo])
		if p.holds(try) {
			a.floor, a.ceiling = try.floor, try.ceiling
		}
	}
}

// holds reports whether usable switches join all members, be it that some only
// forward.
func (p *Planner) holds(a asked) bool { return len(p.together(a)) == len(a.Members) }

// together returns the ranks of the most members that usable switches join, of
// equally many those with the lowest rank among them.
func (p *Planner) together(a asked) []int {
	s := p.sketch(a)
	u := newUnions(len(s.nodes))
	members := int32(len(a.Members)) // the nodes below are members, through which no tree leads
	for _, e := range s.ends {
		if e[0] >= members {
			u.join(e[0], e[1])
		}
	}
	byPart := map[int32][]int{}
	var best []int
	for _, e := range s.ends { // in the order of ranks
		if e[0] >= members {
			continue
		}
		part, rank := u.find(e[1]), int(e[0])
		if list := byPart[part]; len(list) == 0 || list[len(list)-1] != rank {
			byPart[part] = append(list, rank)
		}
		if list := byPart[part]; len(list) > len(best) || len(list) == len(best) && list[0] < best[0] {
			best = list
		}
	}
	return best
}

// orient makes a tree of links, given by their ends, of which ranks are the
// members and rest switches, with the root at the centre: the switch that can
// be it of which the furthest member is the nearest. It returns false if none
// can be.
func (p *Planner) orient(a asked, links []topology.LinkID) (Tree, bool) {
	o := &orientation{p: p, asked: a, near: map[topology.NodeID][]topology.LinkID{}}
	for _, l := range links {
		for _, end := range p.graph.Link(l).Ends {
			o.near[end.Node] = append(o.near[end.Node], l)
		}
	}
	root := o.centre()
	if root == topology.NoNode {
		return Tree{}, false
	}
	return o.tree(root)
}

// orientation is an undirected tree of links.
type orientation struct {
	p *Planner
	asked
	near map[topology.NodeID][]topology.LinkID
}

// distances returns how far each node is, in the order in which they are met.
func (o *orientation) distances(from topology.NodeID) ([]topology.NodeID, map[topology.NodeID]int) {
	away := map[topology.NodeID]int{from: 0}
	queue := []topology.NodeID{from}
	for i := 0; i < len(queue); i++ {
		for _, l := range o.near[queue[i]] {
			n := o.p.graph.Across(l, queue[i])
			if _, met := away[n]; !met {
				away[n] = away[queue[i]] + 1
				queue = append(queue, n)
			}
		}
	}
	return queue, away
}

// centre returns the root.
func (o *orientation) centre() topology.NodeID {
	order, _ := o.distances(o.Members[0])
	one := order[len(order)-1]
	order, fromOne := o.distances(one)
	_, fromOther := o.distances(order[len(order)-1])
	best, bestFar, bestHash := topology.NoNode, 0, uint64(0)
	for _, n := range order {
		if !o.p.graph.IsSwitch(n) || !o.reduces(n) || len(o.near[n]) > o.view.Capability(n).Children {
			continue
		}
		far, hash := max(fromOne[n], fromOther[n]), mix(o.hash, uint64(n))
		if best == topology.NoNode || far < bestFar || far == bestFar && hash < bestHash {
			best, bestFar, bestHash = n, far, hash
		}
	}
	return best
}

// tree directs all edges to the root. Switches that cannot reduce become parts
// of routes.
func (o *orientation) tree(root topology.NodeID) (Tree, bool) {
	g := o.p.graph
	lowest := o.lowest(root)
	t := Tree{Vertices: []Vertex{{Switch: root, Parent: -1, Up: topology.NoLink}}, Leaves: make([]Leaf, len(o.Members))}
	came := []topology.LinkID{topology.NoLink} // by vertex: the last link of its edge
	for i := 0; i < len(t.Vertices); i++ {
		at := t.Vertices[i].Switch
		down := slices.DeleteFunc(slices.Clone(o.near[at]), func(l topology.LinkID) bool { return l == came[i] })
		slices.SortFunc(down, func(x, y topology.LinkID) int {
			return cmp.Compare(lowest[g.Across(x, at)], lowest[g.Across(y, at)])
		})
		for _, first := range down {
			links, n := []topology.LinkID{first}, g.Across(first, at)
			for g.IsSwitch(n) && !o.reduces(n) {
				if len(o.near[n]) != 2 {
					return Tree{}, false
				}
				last := links[len(links)-1]
				next := o.near[n][0]
				if next == last {
					next = o.near[n][1]
				}
				links, n = append(links, next), g.Across(next, n)
			}
			came = o.hang(&t, int32(i), n, links, came)
		}
	}
	return t, true
}

// hang adds a child and, of an edge of several links, its route.
func (o *orientation) hang(t *Tree, parent int32, n topology.NodeID, links, came []topology.LinkID) []topology.LinkID {
	slices.Reverse(links)
	route := Route{Vertex: -1, Rank: -1, Links: links}
	if o.p.graph.IsHost(n) {
		route.Rank = o.p.rank[n]
		t.Leaves[route.Rank] = Leaf{Host: n, Vertex: parent, Link: links[0]}
	} else {
		route.Vertex = int32(len(t.Vertices))
		t.Vertices = append(t.Vertices, Vertex{Switch: n, Parent: parent, Up: links[0]})
		came = append(came, links[0])
	}
	if len(links) > 1 {
		t.Routes = append(t.Routes, route)
	}
	return came
}

// lowest returns the lowest rank beneath each node.
func (o *orientation) lowest(root topology.NodeID) map[topology.NodeID]int32 {
	order, away := o.distances(root)
	low := make(map[topology.NodeID]int32, len(order))
	for i := len(order) - 1; i >= 0; i-- {
		n := order[i]
		if o.p.graph.IsHost(n) {
			low[n] = o.p.rank[n]
			continue
		}
		best := int32(len(o.Members))
		for _, l := range o.near[n] {
			if m := o.p.graph.Across(l, n); away[m] > away[n] {
				best = min(best, low[m])
			}
		}
		low[n] = best
	}
	return low
}

// reduces reports whether a switch can serve as a vertex.
func (a *asked) reduces(n topology.NodeID) bool {
	c := a.view.Capability(n)
	return a.view.NodeUp(n) && c.Functions.Covers(a.Functions) && c.Types.Covers(a.Types) && c.Chunk >= a.ChunkBytes &&
		c.Children >= 1 && c.Slots-a.load.UsedSlots(n) >= max(a.Slots, 1)
}
