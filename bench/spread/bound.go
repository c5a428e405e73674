package spread

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/tributary-fabric/tributary/internal/planning/steiner"
	"github.com/tributary-fabric/tributary/topology"
)

// Range is what the linear programme of Least has for its optimum.
type Range struct {
	Least float64 // proven: no placement's most loaded link has less
	Found float64 // trees in shares that have no more were found
}

// Least bounds what the most loaded link between switches has when each group may
// be spread over all its trees, in any shares: the optimum of a linear programme
// with a column for every tree. Its dual gives prices to links: for any prices of a
// sum of one, what the cheapest trees of all groups cost together is a lower bound.
// The cost of a cheapest tree is itself bounded from below, by cuts that package
// steiner proves. Prices grow exponentially with the loads of a placement in
// shares, which goes on by the cheapest trees, so far each time as makes the soft
// maximum of its loads the least (Frank and Wolfe; Plotkin, Shmoys and Tardos,
// Fast approximation algorithms for fractional packing and covering problems,
// Mathematics of Operations Research 20, 1995). It ends after so many rounds, or as
// soon as the bound is enough. Links of the fabric are equal. A host counts at its
// first switch.
func Least(g *topology.Graph, groups [][]topology.NodeID, enough float64, rounds int) (Range, error) {
	p, err := newPacking(g, groups)
	if err != nil || len(p.wide) == 0 {
		return Range{}, err
	}
	r := Range{Found: math.Inf(1)}
	for round := range rounds {
		placed, total, err := p.cheapest()
		if err != nil {
			return Range{}, err
		}
		prices := 0.0
		for e, cost := range p.cost {
			prices += cost * p.wide[e]
		}
		r.Least = max(r.Least, total/prices)
		if round == 0 {
			copy(p.load, placed)
			p.most = p.peak(placed, 1)
		}
		p.sharpness = 4 * math.Log(float64(len(p.wide))+2) * math.Exp2(sharpening*float64(round)/float64(rounds))
		p.mix(placed)
		if r.Found = min(r.Found, p.most); r.Found <= r.Least*(1+near) || r.Least >= enough {
			break
		}
	}
	return r, nil
}

const (
	sharpening = 5     // how often the soft maximum doubles its sharpness on the way
	near       = 0.005 // of both ends of the range, which ends the search
)

// packing is groups that are spread over trees.
type packing struct {
	graph *steiner.Graph
	wide  []float64 // by edge: the parallel links
	load  []float64 // by edge, of the placement in shares
	cost  []float64 // by edge, of one of its links: whole numbers
	sites [][]int32 // the switches of a group
	count []float64 // the groups that have these
	most  float64   // on a link of the placement

	sharpness float64
}

func newPacking(g *topology.Graph, groups [][]topology.NodeID) (*packing, error) {
	p := &packing{}
	var ends [][2]int32
	known := map[[2]int32]int{}
	for _, link := range g.AllLinks() {
		a, b := link.Ends[0].Node, link.Ends[1].Node
		if !g.IsSwitch(a) || !g.IsSwitch(b) {
			continue
		}
		e := [2]int32{int32(g.SwitchIndex(min(a, b))), int32(g.SwitchIndex(max(a, b)))}
		at, met := known[e]
		if !met {
			at = len(ends)
			known[e] = at
			ends, p.wide = append(ends, e), append(p.wide, 0)
		}
		p.wide[at]++
	}
	p.load, p.cost = make([]float64, len(ends)), make([]float64, len(ends))
	for e := range p.cost {
		p.cost[e] = 1
	}
	p.gather(g, groups)
	var err error
	if p.graph, err = steiner.NewGraph(g.Switches(), ends); err != nil {
		return nil, fmt.Errorf("bound of a placement: %w", err)
	}
	return p, nil
}

// gather counts the groups that have members on the same switches.
func (p *packing) gather(g *topology.Graph, groups [][]topology.NodeID) {
	known := map[string]int{}
	for _, members := range groups {
		var sites []int32
		for _, m := range members {
			sites = append(sites, int32(g.SwitchIndex(g.Across(g.Adjacent(m)[0], m))))
		}
		slices.Sort(sites)
		if sites = slices.Compact(sites); len(sites) < 2 {
			continue
		}
		key := make([]byte, 0, 4*len(sites))
		for _, s := range sites {
			key = binary.LittleEndian.AppendUint32(key, uint32(s))
		}
		at, met := known[string(key)]
		if !met {
			at = len(p.sites)
			known[string(key)] = at
			p.sites, p.count = append(p.sites, sites), append(p.count, 0)
		}
		p.count[at]++
	}
}

// cheapest places every group by the present prices, and returns the loads, and
// what all trees cost at least.
func (p *packing) cheapest() (placed []float64, total float64, err error) {
	const work = 30_000
	placed = make([]float64, len(p.wide))
	for i, sites := range p.sites {
		problem := steiner.Problem{Graph: p.graph, Cost: p.cost, Terminals: sites}
		tree, err := steiner.Solve(problem, steiner.Options{Budget: work, Bound: true})
		if err != nil {
			return nil, 0, fmt.Errorf("bound of a placement: %w", err)
		}
		total += p.count[i] * tree.Bound
		for _, e := range tree.Edges {
			placed[e] += p.count[i]
		}
	}
	return placed, total, nil
}

// peak returns the most on a link where the placement has gone to another by a
// share.
func (p *packing) peak(to []float64, share float64) (most float64) {
	for e := range p.load {
		most = max(most, p.between(to, share, e))
	}
	return most
}

func (p *packing) between(to []float64, share float64, e int) float64 {
	return ((1-share)*p.load[e] + share*to[e]) / p.wide[e]
}

// mix goes from the placement to another, by the share that is the best of some,
// and sets the prices.
func (p *packing) mix(to []float64) {
	const least = 0.001
	share, softest := least, math.Inf(1)
	for _, try := range []float64{least, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.3, 0.5, 0.8} {
		most, sum := p.peak(to, try), 0.0
		for e := range p.load {
			sum += p.wide[e] * math.Exp(p.sharpness*(p.between(to, try, e)-most)/p.most)
		}
		if soft := most + p.most*math.Log(sum)/p.sharpness; soft < softest {
			share, softest = try, soft
		}
	}
	for e := range p.load {
		p.load[e] = (1-share)*p.load[e] + share*to[e]
	}
	p.most = p.peak(to, 0)
	for e := range p.cost {
		p.cost[e] = math.Round(1e6 * math.Exp(p.sharpness*(p.load[e]/p.wide[e]/p.most-1)))
	}
}
