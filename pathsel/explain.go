package pathsel

import (
	"fmt"
	"slices"
)

// count says n things in words, for things whose plural takes an s.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// explain makes the choice of what the search found; others are in order.
func (f *field) explain(best outcome, tree Tree, others []outcome, examined int) Choice {
	c := Choice{Tree: tree, Cost: best.cost, Usable: len(f.switches), Examined: examined}
	g := f.view.Graph()
	for _, o := range others[:min(len(others), MaxRunnersUp)] {
		c.RunnersUp = append(c.RunnersUp, Alternative{
			Root: f.switches[o.root], Cost: o.cost, Lost: lost(o.cost, best.cost),
		})
	}
	root := g.Name(tree.Root())
	c.Reason = fmt.Sprintf("root %s: %s over %s, %s, depth %d, present use %d",
		root, count(len(tree.Leaves), "member"), switches(len(tree.Vertices)), count(c.Cost.Hops, "hop"), c.Cost.Depth,
		c.Cost.Load)
	if len(others) == 0 {
		c.Reason += fmt.Sprintf("; no other of %s tried as the root has a tree", switches(examined))
		return c
	}
	equal := slices.IndexFunc(others, func(o outcome) bool { return o.cost != best.cost })
	if equal < 0 {
		equal = len(others)
	}
	if equal > 0 {
		c.Reason += fmt.Sprintf("; chosen by the group's hash among %s of equal cost", switches(equal+1))
	}
	if equal < len(others) {
		next := others[equal]
		c.Reason += fmt.Sprintf("; the next, %s, lost by %s", g.Name(f.switches[next.root]), lost(next.cost, best.cost))
	}
	c.Reason += fmt.Sprintf(" (%d of %s tried)", examined, usable(c.Usable))
	return c
}

func switches(n int) string {
	if n == 1 {
		return "1 switch"
	}
	return fmt.Sprintf("%d switches", n)
}

func usable(n int) string {
	if n == 1 {
		return "1 usable switch"
	}
	return fmt.Sprintf("%d usable switches", n)
}

// lost says by what the cost of one root is above the best.
func lost(cost, best Cost) string {
	switch {
	case cost.Hops != best.Hops:
		return fmt.Sprintf("%s (%d against %d)", count(cost.Hops-best.Hops, "hop"), cost.Hops, best.Hops)
	case cost.Depth != best.Depth:
		return fmt.Sprintf("%d in depth (%d against %d)", cost.Depth-best.Depth, cost.Depth, best.Depth)
	case cost.Load != best.Load:
		return fmt.Sprintf("%d in present use (%d against %d)", cost.Load-best.Load, cost.Load, best.Load)
	}
	return "the group's hash, at equal cost"
}
