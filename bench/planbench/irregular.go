package planbench

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/tributary-fabric/tributary/bench/spread"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// The irregular fabrics, by switches and seeds; the groups that are placed in each,
// and their hosts at most.
const (
	irregularMembers = 32
	boundRounds      = 40  // of every bound
	limitRounds      = 500 // of one that does not show the limit to be kept
)

var (
	irregularSizes  = []int{5, 11, 20, 35, 50}
	irregularGroups = []int{10, 100, 200, 1000}
)

// irregular places groups of 2 to 32 hosts in irregular fabrics, and holds the most
// loaded link against the linear programme over all trees.
func irregular(ctx context.Context, c Config, r *Report, progress func(string)) error {
	for _, layered := range []bool{true, false} {
		kind := "meshed"
		if layered {
			kind = "layered"
		}
		for _, groups := range irregularGroups {
			if groups > c.Groups {
				continue
			}
			var w worst
			for _, switches := range irregularSizes {
				for seed := range uint64(c.Fabrics) {
					if err := ctx.Err(); err != nil {
						return err
					}
					g, err := spread.Irregular(c.Seed+seed, switches, layered)
					if err == nil {
						err = w.take(g, c.Seed+seed, groups)
					}
					if err != nil {
						return err
					}
				}
			}
			progress(fmt.Sprintf("%d groups in %d irregular fabrics, %s", groups, w.fabrics, kind))
			name := fmt.Sprintf("%d groups of 2 to %d hosts, %d %s fabrics: ", groups, irregularMembers, w.fabrics, kind)
			note := fmt.Sprintf("worst in %s: %d against %.2f; mean %.3f", w.fabric, w.most, w.bound, w.sum/float64(w.fabrics))
			r.add(name+"most loaded link", w.ratio, "x the programme", limit(w.bound), note)
		}
	}
	return nil
}

// worst is the fabric whose most loaded link is the furthest above its bound.
type worst struct {
	fabrics int
	fabric  string
	most    int
	bound   float64
	ratio   float64 // to the next whole number
	beyond  float64 // of the limit there
	sum     float64 // of the ratios
}

// take places groups in one more fabric.
func (w *worst) take(g *topology.Graph, seed uint64, groups int) error {
	p, err := pathsel.NewPlanner(g, pathsel.Config{})
	if err != nil {
		return err
	}
	s := &stream{planner: p, load: pathsel.NewLoad(g), rng: rand.New(rand.NewPCG(seed, uint64(groups)))}
	for range groups {
		if _, err := s.place(2 + s.rng.IntN(min(irregularMembers, g.Hosts())-1)); err != nil {
			return err
		}
	}
	most := 0
	for id, link := range g.AllLinks() {
		if g.IsSwitch(link.Ends[0].Node) && g.IsSwitch(link.Ends[1].Node) {
			most = max(most, s.load.LinkTrees(id))
		}
	}
	found, err := spread.Least(g, s.members, float64(most)-1+1e-9, boundRounds)
	if err == nil && float64(most) > limit(found.Least)*whole(found.Least) {
		found, err = spread.Least(g, s.members, float64(most)/ratioLimit, limitRounds)
	}
	if err != nil {
		return err
	}
	ratio := 1.0
	if found.Least > 0 {
		ratio = float64(most) / whole(found.Least)
	}
	w.fabrics, w.sum = w.fabrics+1, w.sum+ratio
	if beyond := ratio / limit(found.Least); beyond > w.beyond {
		w.fabric, w.most, w.bound, w.ratio, w.beyond = g.Fabric(), most, found.Least, ratio, beyond
	}
	return nil
}
