package pathsel

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/topology"
)

// Striped are several trees of one group, over which its vectors are cut.
type Striped struct {
	Plans []Plan
	// Apart are the first plans that share nothing with those before them or with
	// Request.Avoid (Plan.Shared): with so many stripes the fabric gives so many
	// times the bandwidth of one, up to that of the members' own links.
	Apart int
}

// Stripes plans n trees of a group, each apart from the earlier ones as long as
// there are such trees, and from then on over links that are used the least. Each
// reserves the request's slots. load is as it was when it returns. The errors are
// those of Plan for the first tree.
func (p *Planner) Stripes(view topology.View, load *Load, req Request, n int) (Striped, error) {
	if n < 1 {
		return Striped{}, fmt.Errorf("plan stripes: %w: %d stripes", ErrRequest, n)
	}
	plans, err := p.series(view, load, req, slices.Repeat([][]topology.NodeID{req.Members}, n))
	if len(plans) == 0 {
		return Striped{}, fmt.Errorf("plan stripes: %w", err)
	}
	s := Striped{Plans: plans} // where there are fewer, there are no slots for more
	for s.Apart < len(plans) && plans[s.Apart].Shared == 0 {
		s.Apart++
	}
	return s, nil
}

// series plans a tree for each of some lists of members, apart from those before
// it, up to the first that has none. load is as it was when it returns.
func (p *Planner) series(view topology.View, load *Load, req Request, members [][]topology.NodeID) (plans []Plan, err error) {
	if load == nil {
		load = NewLoad(p.graph)
	}
	req.Avoid = slices.Clone(req.Avoid)
	for _, req.Members = range members {
		plan, err := p.Plan(view, load, req)
		if err != nil {
			return plans, err
		}
		load.Add(plan.Tree, req.Slots)
		defer load.Remove(plan.Tree, req.Slots)
		req.Avoid = append(req.Avoid, plan.Tree)
		plans = append(plans, plan)
	}
	return plans, nil
}

// Part is a share of a group that has a root of its own.
type Part struct {
	Ranks []int // in the group, ascending: rank i of the plan's tree is Ranks[i]
	Plan  Plan
}

// Parts plans a group with n roots, or as many as it has switches: each computes
// the end result of its part, and the member that is to have the whole reduces
// the roots' results, in the order of the parts. Parts are what lies beneath one
// switch of the group's whole tree, or several, and are about equal; they are
// ordered by their lowest ranks. load is as it was when it returns. The errors
// are those of Plan for the whole group or a part.
func (p *Planner) Parts(view topology.View, load *Load, req Request, n int) ([]Part, error) {
	if n < 1 {
		return nil, fmt.Errorf("plan parts: %w: %d roots", ErrRequest, n)
	}
	whole, err := p.Plan(view, load, req)
	if err != nil {
		return nil, fmt.Errorf("plan parts: %w", err)
	}
	parts := divide(whole.Tree, n)
	members := make([][]topology.NodeID, len(parts))
	for i := range parts {
		for _, rank := range parts[i].Ranks {
			members[i] = append(members[i], req.Members[rank])
		}
	}
	plans, err := p.series(view, load, req, members)
	if err != nil {
		return nil, fmt.Errorf("plan parts: part %d of %d: %w", len(plans)+1, len(parts), err)
	}
	for i := range parts {
		parts[i].Plan = plans[i]
	}
	return parts, nil
}

// divide cuts the members of a tree in at most n parts.
func divide(t Tree, n int) []Part {
	units := cutUnits(t, n)
	slices.SortStableFunc(units, func(x, y []int) int { return cmp.Compare(len(y), len(x)) })
	parts := make([]Part, min(n, len(units)))
	for _, u := range units { // the largest first, to the part that has the least
		least := 0
		for i := range parts {
			if len(parts[i].Ranks) < len(parts[least].Ranks) {
				least = i
			}
		}
		parts[least].Ranks = append(parts[least].Ranks, u...)
	}
	for _, part := range parts {
		slices.Sort(part.Ranks)
	}
	slices.SortFunc(parts, func(x, y Part) int { return cmp.Compare(x.Ranks[0], y.Ranks[0]) })
	return parts
}

// cutUnits returns the ranks beneath switches of a tree: of the root's children,
// and where these are fewer than n, of theirs; members of the root itself are
// one unit.
func cutUnits(t Tree, n int) [][]int {
	children := t.AllChildren()
	type unit struct {
		vertex int32 // -1: members that are cut no further
		ranks  []int
	}
	var beneath func(v int32) []int
	beneath = func(v int32) (ranks []int) {
		for _, c := range children[v] {
			if c.Vertex < 0 {
				ranks = append(ranks, int(c.Lowest))
			} else {
				ranks = append(ranks, beneath(c.Vertex)...)
			}
		}
		return ranks
	}
	units := []unit{{0, beneath(0)}}
	for len(units) < n {
		largest := -1
		for i, u := range units {
			if u.vertex >= 0 && (largest < 0 || len(u.ranks) > len(units[largest].ranks)) {
				largest = i
			}
		}
		if largest < 0 {
			break
		}
		u := units[largest]
		units = slices.Delete(units, largest, largest+1)
		own := unit{vertex: -1}
		for _, c := range children[u.vertex] {
			if c.Vertex < 0 {
				own.ranks = append(own.ranks, int(c.Lowest))
			} else {
				units = append(units, unit{c.Vertex, beneath(c.Vertex)})
			}
		}
		if len(own.ranks) > 0 {
			units = append(units, own)
		}
	}
	lists := make([][]int, len(units))
	for i, u := range units {
		lists[i] = u.ranks
	}
	return lists
}
