package steiner

import (
	"math/rand/v2"
	"slices"
)

// A packing is a dual ascent that can be improved: it knows, for every
// terminal, the cuts that were raised round it. Together the cuts take no more
// from an arc than it costs, and what they take in sum is the bound.
//
// It is improved as trees are, by local search: the cuts of a few terminals
// that are near each other are taken back, these terminals climb again in an
// order by chance, and what lowers the bound is undone. Most steps leave the
// bound as it is, and are kept: they lead to others. Where costs are equal, one
// ascent alone ends several percent below what the cuts can reach, since each
// raise uses up all of some arc.
type packing struct {
	*ascent
	rng  *rand.Rand
	cuts [][]raised // by node
	size int        // arcs of all cuts; so much work is held back for proven

	moved []int32    // the terminals that climb
	taken [][]raised // the cuts that these had
	past  []change   // since then, the oldest first
}

// raised is a cut, and by how much its arcs were reduced.
type raised struct {
	by   float64
	arcs []int32
}

// change reports what the reduced cost of an arc was.
type change struct {
	arc int32
	was float64
}

// newPacking returns a packing towards root. Where the budget ends before all
// terminals have climbed, those that are left may do so later.
func newPacking(g *net, root int32, rng *rand.Rand) *packing {
	p := &packing{ascent: newAscent(g), rng: rng, cuts: make([][]raised, g.nodes())}
	p.begin(root)
	p.moved = append(p.moved, g.terms...)
	p.climb()
	return p
}

// improve makes one step, with at most the given number of terminals, and
// reports whether the bound rose.
func (p *packing) improve(most int) bool {
	was := p.bound
	p.choose(1 + p.rng.IntN(most))
	p.release()
	p.climb()
	rounding := float64(1e-12 * was)
	if p.bound < was-rounding {
		p.undo()
		p.bound = was
	}
	for _, cuts := range p.taken {
		p.hold(-arcsOf(cuts))
	}
	return p.bound > was+rounding
}

// choose takes a terminal and those nearest to it, in edges.
func (p *packing) choose(count int) {
	g := p.g
	center := g.terms[p.rng.IntN(len(g.terms))]
	p.now++
	p.seen[center] = p.now
	p.queue, p.moved = append(p.queue[:0], center), p.moved[:0]
	for i := 0; i < len(p.queue) && len(p.moved) < count && !g.meter.spent(); i++ {
		v := p.queue[i]
		if g.term[v] {
			p.moved = append(p.moved, v)
		}
		arcs := g.at(v)
		g.meter.add(len(arcs))
		for _, out := range arcs {
			if p.seen[out.to] != p.now {
				p.seen[out.to] = p.now
				p.queue = append(p.queue, out.to)
			}
		}
	}
}

// release takes back the cuts of the terminals chosen.
func (p *packing) release() {
	p.past, p.taken = p.past[:0], p.taken[:0]
	for i, t := range p.moved {
		size := arcsOf(p.cuts[t])
		if !p.g.meter.affords(size) {
			p.moved = p.moved[:i]
			return
		}
		p.g.meter.add(size)
		for _, c := range p.cuts[t] {
			p.note(c.arcs)
			p.bound -= c.by
			for _, arc := range c.arcs {
				p.reduced[arc] += c.by
			}
		}
		p.taken = append(p.taken, p.cuts[t])
		p.cuts[t] = nil
	}
}

// climb raises cuts round the terminals chosen, in an order by chance, until
// none can be raised or the budget ends.
func (p *packing) climb() {
	p.heap = p.heap[:0]
	for _, t := range p.moved {
		if p.active[t] = t != p.root; p.active[t] {
			p.heap.Push(p.rng.Float64(), t)
		}
	}
	for len(p.heap) > 0 && !p.g.meter.spent() {
		t := p.heap.Pop().Node
		if !p.separate(t) || !p.g.meter.affords(len(p.cut)) {
			p.active[t] = false
			continue
		}
		p.note(p.cut)
		p.cuts[t] = append(p.cuts[t], raised{p.raise(), slices.Clone(p.cut)})
		p.hold(len(p.cut))
		p.heap.Push(p.rng.Float64(), t)
	}
	for _, left := range p.heap {
		p.active[left.Node] = false
	}
}

// note keeps the reduced costs of arcs for undo.
func (p *packing) note(arcs []int32) {
	for _, arc := range arcs {
		p.past = append(p.past, change{arc, p.reduced[arc]})
	}
}

// undo restores what was before release.
func (p *packing) undo() {
	for _, c := range slices.Backward(p.past) {
		p.reduced[c.arc] = c.was
	}
	for i, t := range p.moved {
		p.cuts[t], p.taken[i] = p.taken[i], p.cuts[t]
	}
}

// hold keeps work back for the proof.
func (p *packing) hold(arcs int) {
	p.size += arcs
	p.g.meter.budget -= int64(arcs)
}

func arcsOf(cuts []raised) (count int) {
	for _, c := range cuts {
		count += len(c.arcs)
	}
	return count
}

// proven returns the bound as the cuts alone give it, added up anew: what many
// steps have rounded is left behind, and if the cuts take more of an arc than
// it costs, all of them count for less.
func (p *packing) proven() float64 {
	total, excess := 0.0, 1.0
	used := make([]float64, len(p.reduced))
	for _, cuts := range p.cuts {
		for _, c := range cuts {
			total += c.by
			p.g.meter.add(len(c.arcs))
			for _, arc := range c.arcs {
				used[arc] += c.by
			}
		}
	}
	for arc, sum := range used {
		if cost := p.g.cost[arc/2]; sum > cost {
			excess = max(excess, sum/cost)
		}
	}
	return total / excess
}
