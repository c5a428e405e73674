package planbench

import (
	"context"
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// programmes holds many groups in small fabrics against linear programmes: the
// least that the most loaded link between switches can have when every group may
// be spread over all its trees of the fewest hops, in any shares.
func programmes(_ context.Context, c Config, r *Report, progress func(string)) error {
	for _, test := range []struct {
		fabric          string
		groups, members int
	}{{fabric: "fat-tree:4", groups: 60, members: 5}, {fabric: "leaf-spine:4,6,4", groups: 60, members: 6}} {
		progress(fmt.Sprintf("%d groups in %s", test.groups, test.fabric))
		e := topology.DefaultEquipment()
		e.Switch.Slots = 1 << 20
		g, err := e.Parse(test.fabric)
		if err != nil {
			return err
		}
		p, err := pathsel.NewPlanner(g, pathsel.Config{})
		if err != nil {
			return err
		}
		s := &stream{planner: p, load: pathsel.NewLoad(g), rng: rand.New(rand.NewPCG(c.Seed, 1))}
		var choices [][]pathsel.Tree
		for range test.groups {
			req := s.next(test.members)
			plan, err := p.Plan(g.View(), s.load, req)
			if err != nil {
				return err
			}
			s.load.Add(plan.Tree, req.Slots)
			choices = append(choices, trees(p, req, plan.Figures.Hops))
		}
		least, err := Spread(g, choices)
		if err != nil {
			return err
		}
		floors, _ := p.Floors(s.members, s.slots)
		have, cut := 0.0, 0.0
		for layer, most := range s.load.Peaks().Links {
			if layer > 0 {
				have, cut = max(have, most), max(cut, floors.Links[layer])
			}
		}
		r.add(fmt.Sprintf("%d groups of %d hosts, %s: most loaded link", test.groups, test.members, test.fabric),
			have/least, "x the programme", ratioLimit, fmt.Sprintf("%.0f against %.2f; the cut says %.2f", have, least, cut))
	}
	return nil
}

// trees returns a group's trees of so many hops, one for each root that has one.
func trees(p *pathsel.Planner, req pathsel.Request, hops int) []pathsel.Tree {
	var all []pathsel.Tree
	g := p.Graph()
	first, err := p.Plan(g.View(), nil, req)
	if err != nil {
		return nil
	}
	layer := g.Layer(first.Tree.Root())
	for i := range g.Switches() {
		if g.Layer(g.Switch(i)) != layer {
			continue
		}
		r := req
		r.Criterion = pathsel.FewestHops
		for j := range g.Switches() {
			if g.Layer(g.Switch(j)) == layer && j != i {
				r.Exclude = append(r.Exclude, g.Switch(j))
			}
		}
		if plan, err := p.Plan(g.View(), nil, r); err == nil && plan.Figures.Hops == hops {
			all = append(all, plan.Tree)
		}
	}
	return all
}

// Spread solves the linear programme: groups, each with the trees that it may
// have, spread over these in shares, such that the most loaded link between
// switches has as little as can be. It returns that least.
func Spread(g *topology.Graph, choices [][]pathsel.Tree) (float64, error) {
	row := map[topology.LinkID]int{} // of the links that any tree has
	columns := 1                     // the first is the least itself
	for _, trees := range choices {
		columns += len(trees)
		for _, t := range trees {
			for l := range t.Links() {
				ends := g.Link(l).Ends
				if _, known := row[l]; !known && g.IsSwitch(ends[0].Node) && g.IsSwitch(ends[1].Node) {
					row[l] = len(choices) + len(row)
				}
			}
		}
	}
	if len(row) == 0 {
		return 0, nil
	}
	// Each group's shares are one; each link's load and slack are the least.
	a := mat.NewDense(len(choices)+len(row), columns+len(row), nil)
	b, cost := make([]float64, len(choices)+len(row)), make([]float64, columns+len(row))
	cost[0] = 1
	column := 1
	for i, trees := range choices {
		b[i] = 1
		for _, t := range trees {
			a.Set(i, column, 1)
			for l := range t.Links() {
				if at, ok := row[l]; ok {
					a.Set(at, column, 1)
				}
			}
			column++
		}
	}
	for _, at := range row {
		a.Set(at, 0, -1)
		a.Set(at, columns+at-len(choices), 1)
	}
	least, _, err := lp.Simplex(cost, a, b, 1e-9, nil)
	if err != nil {
		return 0, fmt.Errorf("linear programme of %d groups and %d links: %w", len(choices), len(row), err)
	}
	return least, nil
}
