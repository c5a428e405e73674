package steiner

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

const (
	startsTried     = 64   // roots to grow a first tree from, where limits bind
	regrows         = 8    // attempts to find another tree, where limits bind
	idleAscents     = 8    // dual ascents in a row that bring nothing, before restarts begin
	idleRestarts    = 1500 // restarts in a row that bring nothing, before the search ends
	idleTree        = 50   // restarts in a row that leave a tree as it is, before another one is taken
	restartsPerTurn = 16   // before it is the bound's turn for as much work
	smallestBall    = 30   // nodes near which moves begin, at least
	worthwhile      = 0.1  // part of the edges that must drop out for restarts to begin anew
	boundShare      = 0.25 // of the budget, where a bound is asked for
	ascentShare     = 0.5  // of the budget that is left when the ascents begin
	barrenAscents   = 1    // that have spared no edge and leave a wide gap, before annealing begins
	wideGap         = 0.03 // between tree and bound
	annealShare     = 0.5  // of the budget that is left, for annealing; all of it where ascents spare nothing
	tightenShare    = 0.2  // of the budget that is left, for a better bound before the restarts
	movedAtOnce     = 24   // terminals whose cuts are taken back at once, at most
	ending          = 4    // times the nodes of a tree, and the edges of a node, end the search once its budget has ended
	noise           = 0.3  // of a perturbed cost, relative
)

// A solver holds the state of Solve.
type solver struct {
	g     *net // what is left of the problem
	meter *meter
	rng   *rand.Rand

	edges []int32 // of the best tree, edges of the problem
	cost  float64
	bound float64

	now     []int32 // where the search stands: a tree of g, nil if none is known
	nowCost float64
	scratch []int32
	barren  bool // the ascents have spared no edge

	grower  *grower
	local   *local
	ascent  *ascent  // the last
	packing *packing // of g, nil before its first use
}

func newSolver(g *net, seed uint64) *solver {
	s := &solver{meter: g.meter, cost: math.Inf(1), bound: g.raise(g.base), rng: rand.New(rand.NewPCG(seed, 1))}
	s.use(g)
	return s
}

// use goes on with g.
func (s *solver) use(g *net) {
	s.g, s.now, s.packing = g, nil, nil
	s.grower, s.local, s.ascent = newGrower(g), newLocal(g), newAscent(g)
	if len(g.terms) == 1 {
		s.offer(nil)
		s.bound = s.cost
	}
}

// offer reports a tree of g. The cheapest of all is kept, and the search goes
// on from it if it costs no more than where the search stands.
func (s *solver) offer(edges []int32) {
	total := s.g.base + s.g.sum(edges)
	if s.now == nil || total <= s.nowCost {
		s.now, s.nowCost = append(s.now[:0], edges...), total
	}
	if total < s.cost {
		s.cost, s.edges = total, s.g.expand(edges)
	}
}

// optimal says whether no tree can be cheaper than the best.
func (s *solver) optimal() bool { return s.bound >= s.cost-s.g.slack(s.cost) }

// done says whether the search is to end.
func (s *solver) done() bool { return s.optimal() || s.meter.spent() }

// improve searches from a tree of g.
func (s *solver) improve(edges []int32) {
	s.local.t.build(edges)
	s.local.run()
	s.take()
}

// take offers the tree that the local search has come to.
func (s *solver) take() {
	s.scratch = s.local.t.edges(s.scratch[:0])
	s.meter.add(len(s.scratch))
	s.offer(s.scratch)
}

// first finds a tree.
func (s *solver) first() error {
	if len(s.g.terms) == 1 {
		return nil
	}
	s.meter.forced = true
	defer func() { s.meter.forced = false }()
	if edges, ok := s.g.mehlhorn(); ok {
		s.offer(edges)
		return nil
	}
	for i, v := range s.starts() {
		cost := s.g.cost
		if i%2 == 1 {
			cost = s.perturb(1)
		}
		if edges, ok := s.grower.grow(v, cost, nil); ok {
			s.offer(edges)
			return nil
		}
	}
	return ErrNoTree
}

// starts returns nodes to begin a tree at, those that may branch most first.
func (s *solver) starts() []int32 {
	g := s.g
	nodes := make([]int32, g.nodes())
	for v := range nodes {
		nodes[v] = int32(v)
	}
	room := func(v int32) int32 { return min(g.limit[v], int32(len(g.at(v)))) }
	slices.SortStableFunc(nodes, func(a, b int32) int { return cmp.Compare(room(b), room(a)) })
	for i := 0; len(nodes) < startsTried; i++ {
		nodes = append(nodes, nodes[i])
	}
	return nodes[:startsTried]
}

// search improves the first tree until the budget ends or the tree is optimal.
// For the bound a quarter of the budget is left, if that is asked for: the tree
// is the one that three quarters give without it.
func (s *solver) search(bound bool) {
	if bound {
		s.meter.within(s.meter.left(1-boundShare), s.seek)
		s.prove()
		return
	}
	s.seek()
}

// seek searches for a tree.
func (s *solver) seek() {
	if s.done() {
		return
	}
	if s.now != nil {
		s.improve(s.now)
	}
	s.meter.within(s.meter.left(ascentShare), s.climb)
	if !s.done() && !s.barren {
		s.tighten(s.meter.left(tightenShare), 0)
	}
	if !s.done() && s.now != nil {
		share := annealShare
		if s.barren {
			share = 1
		}
		s.anneal(s.meter.left(share))
	}
	if !s.done() {
		s.wander()
	}
}

// prove searches for the bound until the budget ends.
func (s *solver) prove() {
	if !s.done() {
		s.tighten(s.meter.left(1), 0)
	}
}

// climb makes dual ascents from one root after another until several in a row
// have raised no bound, found no better tree and spared no edge.
func (s *solver) climb() {
	whole, done := s.g.edges(), 0
	for idle := 0; idle < idleAscents && !s.done(); idle++ {
		if done == barrenAscents && s.g.edges() == whole && s.cost-s.bound > wideGap*s.cost {
			s.barren = true
			return
		}
		bound, cost, edges := s.bound, s.cost, s.g.edges()
		s.ascend(s.root())
		if s.bound > bound || s.cost < cost || s.g.edges() < edges {
			idle = -1
		}
		done++
	}
}

// ascend makes one dual ascent, looks for a tree where it left no reduced cost,
// and goes on with what a better tree can use.
func (s *solver) ascend(root int32) {
	s.ascent.run(root)
	s.bound = max(s.bound, s.g.raise(s.g.base+s.ascent.bound))
	if s.done() {
		return
	}
	s.sprout(root, s.g.cost)
	s.narrow(0)
}

// sprout looks for a tree, by the given costs, where the last ascent left no
// reduced cost.
func (s *solver) sprout(root int32, cost []float64) {
	allowed := make([]bool, s.g.edges())
	s.ascent.free(allowed)
	edges, ok := s.grower.grow(root, cost, allowed)
	if !ok { // a limit is in the way
		edges, ok = s.grower.grow(root, cost, nil)
	}
	if ok {
		s.improve(edges)
	}
}

// narrow goes on with the edges that a tree better than the best can use by the
// last ascent, if at least the given part of them drops out. If they do not
// join the terminals, there is no such tree.
func (s *solver) narrow(part float64) {
	if !s.meter.affords(6 * s.g.edges()) {
		return
	}
	kept, left := s.ascent.useful(s.cost - s.g.base)
	if float64(s.g.edges()-left) < max(1, part*float64(s.g.edges())) {
		return
	}
	g, err := s.g.keep(kept)
	if err != nil {
		s.bound = s.cost
		return
	}
	s.use(g)
}

// tighten searches for a better bound by so much work, and then for a tree
// where that left no reduced cost. It goes on with what a better tree can use,
// if at least the given part of the edges drops out.
func (s *solver) tighten(work int64, part float64) {
	if s.packing != nil && !s.meter.affords(s.packing.size) {
		return
	}
	s.meter.within(work, func() {
		if s.packing == nil {
			s.packing = newPacking(s.g, s.root(), s.rng)
		} else {
			s.meter.budget -= int64(s.packing.size)
		}
		for !s.done() && s.g.raise(s.g.base+s.packing.bound) < s.cost-s.g.slack(s.cost) {
			s.packing.improve(movedAtOnce)
		}
	})
	s.bound = max(s.bound, s.g.raise(s.g.base+s.packing.proven()))
	if s.done() {
		return
	}
	s.ascent = s.packing.ascent
	if !s.meter.affords(s.g.edges()) {
		return
	}
	s.sprout(s.root(), s.perturb(noise))
	s.narrow(part)
}

// wander leaves the tree where it stands, again and again, by a local search
// that goes by perturbed costs, and comes back by one that goes by the true
// ones; both begin their moves near one node. Where that has helped no more for
// long, it begins anew from another tree. In turns it does as much for the bound.
func (s *solver) wander() {
	best, here := s.cost, math.Inf(1)
	idle, idleHere := 0, 0
	begun := s.meter.done
	for round := 1; idle < idleRestarts && !s.done(); round++ {
		if round%restartsPerTurn == 0 {
			if s.tighten(s.meter.done-begun, worthwhile); s.done() {
				return
			}
			begun = s.meter.done
		}
		if s.now == nil || idleHere > idleTree {
			if s.regrow(); s.now == nil {
				return
			}
			here, idleHere = s.nowCost, 0
		}
		if !s.meter.affords(2 * s.g.edges()) {
			return
		}
		s.shake()
		idle, idleHere = idle+1, idleHere+1
		if s.nowCost < here-s.g.slack(here) {
			here, idleHere = s.nowCost, 0
		}
		if s.cost < best-s.g.slack(best) {
			best, idle = s.cost, 0
		}
	}
}

// shake makes one restart.
func (s *solver) shake() {
	s.local.scope = s.ball(max(smallestBall, s.g.nodes()>>s.rng.IntN(4)))
	s.local.t.build(s.now)
	s.local.cost = s.perturb(noise)
	s.local.run()
	s.local.cost = s.g.cost
	s.local.run()
	s.local.scope = nil
	s.take()
}

// regrow goes on from a new tree, if it finds one: a limit may be in the way.
func (s *solver) regrow() {
	for range regrows {
		if !s.meter.affords(s.g.edges()) {
			return
		}
		if edges, ok := s.grower.grow(s.root(), s.perturb(noise), nil); ok {
			s.now = nil
			s.improve(edges)
			return
		}
		if s.meter.spent() {
			return
		}
	}
}

// root returns a terminal by chance.
func (s *solver) root() int32 { return s.g.terms[s.rng.IntN(len(s.g.terms))] }

// perturb returns costs that are higher by up to the given part.
func (s *solver) perturb(part float64) []float64 {
	s.meter.add(s.g.edges())
	cost := make([]float64, s.g.edges())
	for e, c := range s.g.cost {
		cost[e] = c * (1 + float64(part*s.rng.Float64())) // rounded: the same where multiplications and additions are fused
	}
	return cost
}

// ball returns the given number of nodes that are nearest to one of them, in
// edges.
func (s *solver) ball(size int) []bool {
	in := make([]bool, s.g.nodes())
	center := int32(s.rng.IntN(s.g.nodes()))
	queue := []int32{center}
	in[center] = true
	for i := 0; i < len(queue) && len(queue) < size; i++ {
		for _, a := range s.g.at(queue[i]) {
			if !in[a.to] && len(queue) < size {
				in[a.to] = true
				queue = append(queue, a.to)
			}
		}
	}
	return in
}

// tree returns the best tree.
func (s *solver) tree(p *Problem) *Tree {
	t := &Tree{Edges: s.edges, Cost: p.sum(s.edges), Work: s.meter.done}
	t.Bound = min(s.bound, t.Cost)
	return t
}
