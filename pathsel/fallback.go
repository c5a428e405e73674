package pathsel

import (
	"cmp"
	"errors"
	"slices"

	"github.com/tributary-fabric/tributary/internal/ground/disjoint"
)

// fallback returns the trees of a fabric without layers, or one that is too
// damaged for them, best first: by the shortest paths and by package steiner.
func (p *Planner) fallback(a asked) ([]candidate, error) {
	direct := *a.Request
	direct.Forward = false
	if a.Forward && !p.anyRelays(a) {
		a.Request = &direct
	}
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
	switch {
	case len(all) > 0:
	case a.Forward:
		// What is narrow or full was left out as long as members hang together by
		// some edges; these may have too many children.
		a.Request, a.floor, a.ceiling = &direct, 0, 0
		return p.fallback(a)
	default:
		return nil, err
	}
	slices.SortStableFunc(all, func(x, y candidate) int {
		return cmp.Or(x.figures.Compare(y.figures, a.by), cmp.Compare(x.hash, y.hash))
	})
	return all, nil
}

// byShortestPaths returns the best tree of shortest paths: the fewest hops, then the
// least depth, then the least present use.
func (p *Planner) byShortestPaths(a asked) (candidate, error) {
	f := newSubgraph(a)
	if refusal := f.attachMembers(); refusal != nil {
		return candidate{}, refusal
	}
	roots := f.rankRoots()
	if len(roots) == 0 {
		return candidate{}, f.refuseUnreached()
	}
	found, err := f.chooseRoot(roots)
	if err != nil {
		return candidate{}, err
	}
	c := p.candidate(a, found.tree, ByShortestPaths)
	c.tried = found.examined
	for _, o := range found.others[:min(len(found.others), max(p.cfg.Rivals, 0))] {
		c.rivals = append(c.rivals, Rival{
			Root: f.switches[o.root], Method: ByShortestPaths, Lost: lost(o.cost, found.cost),
			Figures: Figures{Hops: o.cost.Hops, Depth: o.cost.Depth, Use: o.cost.Load},
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
	s := p.steinerInput(a)
	u := disjoint.New(len(s.nodes))
	members := int32(len(a.Members)) // the nodes below are members, through which no tree leads
	for _, e := range s.ends {
		if e[0] >= members {
			u.Join(e[0], e[1])
		}
	}
	byPart := map[int32][]int{}
	var best []int
	for _, e := range s.ends { // in the order of ranks
		if e[0] >= members {
			continue
		}
		part, rank := u.Find(e[1]), int(e[0])
		if list := byPart[part]; len(list) == 0 || list[len(list)-1] != rank {
			byPart[part] = append(list, rank)
		}
		if list := byPart[part]; len(list) > len(best) || len(list) == len(best) && list[0] < best[0] {
			best = list
		}
	}
	return best
}
