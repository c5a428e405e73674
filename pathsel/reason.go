package pathsel

import (
	"fmt"
	"slices"
	"strings"
)

// rivals returns the best trees that were not chosen, of all candidates.
func (p *Planner) rivals(a asked, all []candidate) []Rival {
	best := all[0]
	list := slices.Clone(best.rivals)
	for _, c := range all[1:] {
		list = append(list, Rival{Root: c.tree.Root(), Method: c.method, Figures: c.figures, Lost: p.behind(a, all, c)})
		if a.Weights.given() {
			list = append(list, c.rivals...)
		}
	}
	return list[:min(len(list), max(p.cfg.Rivals, 0))]
}

// behind says by what a candidate lost.
func (p *Planner) behind(a asked, all []candidate, c candidate) string {
	if a.Weights.given() {
		score := scores(a.Weights, []candidate{all[0], c})
		if score[1] > score[0] {
			return fmt.Sprintf("a score of %.3f against %.3f", score[1], score[0])
		}
	}
	return c.figures.lost(all[0].figures, a.by)
}

// reason says why this tree, in a sentence.
func (p *Planner) reason(plan *Plan) string {
	var b strings.Builder
	f := &plan.Figures
	fmt.Fprintf(&b, "root %s: %s over %s, %s, depth %d, latency %v, %s left, present use %d; by %s, since %s",
		p.graph.Name(plan.Tree.Root()), count(len(plan.Tree.Leaves), "member"), switches(len(plan.Tree.Vertices)),
		count(f.Hops, "hop"), f.Depth, f.Latency, bitRate(f.Bandwidth), f.Use, plan.by(), plan.Because)
	fmt.Fprintf(&b, "; found by %v", plan.Method)
	if plan.Exact {
		b.WriteString(", and none is better")
	}
	if len(plan.Rivals) > 0 {
		verb := "lost by"
		if plan.Rivals[0].Lost == tied {
			verb = "has"
		}
		fmt.Fprintf(&b, "; the next, %s, %s %s", p.graph.Name(plan.Rivals[0].Root), verb, plan.Rivals[0].Lost)
	}
	return b.String()
}

func (plan *Plan) by() string {
	if plan.Criterion == ByFunction {
		return "the weights"
	}
	if plan.Default {
		return plan.Criterion.String() + " (default)"
	}
	return plan.Criterion.String()
}
