package pathsel

import (
	"fmt"
	"slices"
	"time"
)

// How many times as long as over the best tree by its need an operation of a group
// may take over the tree of the least load that it is given by default: where its
// purpose is known, and where it is not.
const (
	knownBound   = 1.1
	unknownBound = 1.5
)

// need returns what a purpose needs of its tree, which the default keeps to, and why:
//
//   - gather, scatter and all-to-all move every piece the whole way: the fewest
//     hops;
//   - a barrier moves nothing but headers: the least latency;
//   - of the others nothing is known of the bytes: the fewest hops;
//   - a vector that is longer on a link of the model's bandwidth than on its
//     way through the switches of three layers: the widest link, and else the
//     least latency.
func (p Purpose) need(m Model) (Criterion, string) {
	switch {
	case p.everyPiece():
		return FewestHops, fmt.Sprintf("in %v every piece travels the whole way", p.Collective)
	case p.Collective == Barrier:
		return LeastLatency, "a barrier moves headers alone"
	case p.Bytes == 0:
		return FewestHops, "nothing is known of the vector's size"
	}
	if even := m.even(); p.Bytes > even {
		return WidestLink, fmt.Sprintf("%d bytes take longer on a link than on their way (from %d bytes)", p.Bytes, even)
	} else {
		return LeastLatency, fmt.Sprintf("%d bytes take longer on their way than on a link (up to %d bytes)", p.Bytes, even)
	}
}

// everyPiece reports whether switches lessen no bytes of the collective.
func (p Purpose) everyPiece() bool {
	return p.Collective == Gather || p.Collective == Scatter || p.Collective == AllToAll
}

// byDefault reports whether a group asks for no criterion and has no weights.
func (p Purpose) byDefault() bool { return p.Criterion == ByFunction && !p.Weights.given() }

// bound returns how many times as long an operation may take as over the best tree
// by its need; 0: there is no bound but that of hops.
func (a *asked) bound() float64 {
	switch {
	case a.everyPiece():
		return 0
	case a.Collective == Barrier || a.Bytes > 0:
		return knownBound
	}
	return unknownBound
}

// bears says in words what the default keeps to.
func (p Purpose) bears(m Model) string {
	a := asked{Request: &Request{Purpose: p}}
	by, why := p.need(m)
	if bound := a.bound(); bound > 0 {
		return fmt.Sprintf("within %g of the time over the tree by %v, as %s", bound, by, why)
	}
	return fmt.Sprintf("over the fewest hops, as %s", why)
}

// balanced returns the trees of a group that asks for nothing else: of those that its
// purpose bears the one of the least load, and the others behind it.
func (p *Planner) balanced(a asked) ([]candidate, error) {
	all, err := p.direct(a)
	if err != nil {
		return nil, err
	}
	best, apart := p.bestByNeed(a, all)
	if bound := a.bound(); bound > 0 {
		ways, _ := a.Collective.ways()
		a.within = best.figures.Latency + time.Duration((bound-1)*float64(p.takes(a, &best))/ways)
	}
	if apart {
		all = append(all, best)
		slices.SortStableFunc(all, func(x, y candidate) int { return x.figures.Compare(y.figures, a.by) })
	}
	first := slices.IndexFunc(all, func(c candidate) bool { return p.bears(a, &c, &best) })
	if first < 0 {
		return all, nil
	}
	borne := all[first:]
	if better := p.withDetour(a, borne); p.bears(a, &better[0], &best) {
		borne = better
	}
	return p.passOver(a, all[:first], borne), nil
}

// bestByNeed returns the tree by a.need, and whether it is none of all: these are
// without detours. Where none of all can be far behind, it is the first of them.
func (p *Planner) bestByNeed(a asked, all []candidate) (best candidate, apart bool) {
	switch layered := all[0].method == ByLevels; {
	case layered && (a.need == FewestHops || a.need == LeastLatency && p.layers.alike),
		a.need == WidestLink && float64(all[0].figures.Bandwidth)*a.bound() >= float64(p.widest(a)):
		return all[0], false
	case a.need == FewestHops && !a.everyPiece():
		at := slices.IndexFunc(all, func(c candidate) bool { return c.method == ByShortestPaths })
		return all[max(at, 0)], false
	}
	a.by, a.need = a.need, ByFunction
	found, err := p.direct(a)
	if err != nil {
		return all[0], false
	}
	return found[0], true
}

// widest returns a bandwidth that no tree has more of: every member has a link.
func (p *Planner) widest(a asked) int64 {
	least := int64(1<<63 - 1)
	for _, m := range a.Members {
		most := int64(0)
		for _, l := range p.graph.Adjacent(m) {
			if a.view.LinkUp(l) && !a.excludesLink(l) {
				most = max(most, width(a.view, a.load, l, p.graph.Link(l).LinkSpec))
			}
		}
		least = min(least, most)
	}
	return least
}

// bears reports whether a tree is as good as the purpose needs beside the best by that.
func (p *Planner) bears(a asked, c, best *candidate) bool {
	if bound := a.bound(); bound > 0 {
		return float64(p.takes(a, c)) <= bound*float64(p.takes(a, best))
	}
	return c.figures.Hops <= best.figures.Hops
}

// takes returns how long an operation takes over a tree: of long vectors while all trees
// on its switches are in use.
func (p *Planner) takes(a asked, c *candidate) time.Duration {
	return p.cfg.Model.Switches(p.trip(a, &c.tree, &c.figures, a.need == WidestLink))
}

// passOver makes those that the purpose does not bear alternatives to the first of those
// that it does, if they are cheaper.
func (p *Planner) passOver(a asked, passed, borne []candidate) []candidate {
	best := borne[0]
	var rivals []Rival
	for _, c := range passed {
		best.exact = false
		best.tried, best.work = best.tried+c.tried, best.work+c.work
		if c.figures.Price >= best.figures.Price {
			continue
		}
		why := c.figures.lost(best.figures, FewestHops)
		if a.bound() > 0 {
			why = fmt.Sprintf("time (%v, here it is %v), though its load's price is less", p.takes(a, &c), p.takes(a, &best))
		}
		rivals = append(rivals, Rival{Root: c.tree.Root(), Method: c.method, Figures: c.figures, Lost: why})
	}
	best.rivals = append(rivals, best.rivals...)
	return append([]candidate{best}, borne[1:]...)
}
