package steiner

import "math"

// Temperatures, in mean costs of an edge of the tree.
const (
	hot       = 0.24
	cold      = 0.05
	coldEqual = 0.18 // where all costs are equal: the least that a move can cost more is one edge
)

const (
	insertions = 0.12 // of the moves tried, from nodes beside the tree
	paths      = 0.05 // of the key paths drawn, exchanges; the branches drawn are always tried
)

// anneal searches from where the search stands by simulated annealing, with so
// much work: moves by chance, those that cost more are made the more rarely the
// more they cost. Where costs are equal most moves cost nothing, and the tree
// drifts over many trees of one cost until one of them can be improved.
func (s *solver) anneal(work int64) {
	l, t := s.local, s.local.t
	t.build(s.now)
	l.rng = s.rng
	now := l.total()
	mean := now / float64(len(s.now))
	best, edges := now, []int32(nil)
	last := cold
	if s.g.equal {
		last = coldEqual
	}
	s.meter.within(work, func() {
		start, temperature := s.meter.done, 0.0
		for round := 0; !s.done(); round++ {
			if round%64 == 0 {
				part := float64(s.meter.done-start) / float64(work)
				temperature = mean * hot * math.Pow(last/hot, part)
			}
			if !s.jump(-temperature * s.rng.ExpFloat64()) {
				continue
			}
			if now -= l.gain; now < best-s.g.slack(best) {
				best, edges = now, t.edges(edges[:0])
				s.meter.add(len(edges))
			}
		}
	})
	if l.rng = nil; edges != nil {
		s.improve(edges)
	}
}

// jump tries a move by chance that saves more than least, and reports whether
// it made it.
func (s *solver) jump(least float64) bool {
	l, t := s.local, s.local.t
	l.least = least
	s.meter.add(1)
	v := t.nodes[s.rng.IntN(len(t.nodes))]
	switch r := s.rng.Float64(); {
	case r < insertions:
		arcs := s.g.at(v)
		w := arcs[s.rng.IntN(len(arcs))].to
		return !t.on(w) && s.g.passable(w) && l.insert(w)
	case !s.g.term[v] && t.degree[v] >= 3:
		return l.eliminate(v)
	case r > 1-paths:
		for !t.key(v) {
			v = t.child[v]
		}
		return v != t.root && l.exchangePath(v)
	}
	return false
}
