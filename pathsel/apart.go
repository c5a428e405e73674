package pathsel

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/topology"
)

// planApart makes the plan of a request that has trees to keep away from: it
// keeps off what they are on, as far as there is a tree without that, and none that is
// nearer to them and better by the speed of its switches. The errors are those of the
// request without them.
func (p *Planner) planApart(view topology.View, load *Load, req Request) (plan Plan, err error) {
	if err := req.Validate(p.graph); err != nil {
		return Plan{}, fmt.Errorf("plan tree: %w", err)
	}
	others := newFootprint(view, req.Avoid)
	req.Avoid = nil
	without, found := "there is no tree without", false
	for _, r := range append(others.bans(&req), req) {
		next, no := p.Plan(view, load, r)
		switch {
		case !found:
			plan, err, found = next, no, no == nil
		case no == nil && p.outruns(p.ask(view, load, &req), &next, &plan):
			without = "the tree without has " + slowText(plan.Figures.Speed, next.Figures.Speed)
			plan = next
		}
		if found && p.paced(view).alike || err != nil && !errors.Is(err, ErrNoTree) {
			break
		}
	}
	if err == nil {
		plan.Shared, plan.SharedOwn = others.shared(&plan.Tree), others.sharedOwn(&plan.Tree)
		plan.Reason += others.verdict(plan.Shared, without)
	}
	return plan, err
}

// outruns reports whether a plan is better than another that is further apart from
// other trees: this one has a slow switch, and takes longer while all trees on its
// switches and links are in use.
func (p *Planner) outruns(a asked, near, far *Plan) bool {
	a.by = far.Criterion
	took := func(plan *Plan) time.Duration {
		return p.shared(a, &candidate{tree: plan.Tree, figures: plan.Figures})
	}
	return a.timed() && slack*float64(far.Figures.Speed) < float64(near.Figures.Speed) && took(near) < took(far)
}

// Shared returns how many links a tree has that others have too: of its links
// between switches or, where all its members are on one switch, of theirs.
func Shared(g *topology.Graph, t Tree, others []Tree) int {
	return newFootprint(g.View(), others).shared(&t)
}

// footprint is what several trees are on.
type footprint struct {
	view     topology.View
	graph    *topology.Graph
	trees    int
	between  map[topology.LinkID]bool // links between switches
	outside  map[topology.LinkID]bool // links of members
	switches []topology.NodeID        // also those that forward; ascending
}

func newFootprint(view topology.View, trees []Tree) *footprint {
	g := view.Graph()
	f := &footprint{
		view: view, graph: g, trees: len(trees),
		between: map[topology.LinkID]bool{}, outside: map[topology.LinkID]bool{},
	}
	for _, t := range trees {
		for l := range t.Links() {
			if f.joinsSwitches(l) {
				f.between[l] = true
			} else {
				f.outside[l] = true
			}
		}
		for _, v := range t.Vertices {
			f.switches = append(f.switches, v.Switch)
		}
		f.switches = append(f.switches, t.Forwarders(g)...)
	}
	slices.Sort(f.switches)
	f.switches = slices.Compact(f.switches)
	return f
}

func (f *footprint) joinsSwitches(l topology.LinkID) bool {
	ends := f.graph.Link(l).Ends
	return f.graph.IsSwitch(ends[0].Node) && f.graph.IsSwitch(ends[1].Node)
}

func (f *footprint) shared(t *Tree) (links int) {
	same := f.between
	if len(t.Vertices) == 1 && len(t.Routes) == 0 {
		same = f.outside
	}
	for l := range t.Links() {
		if same[l] {
			links++
		}
	}
	return links
}

// sharedOwn returns how many members' links a tree has that others have too.
func (f *footprint) sharedOwn(t *Tree) (links int) {
	for _, l := range t.Leaves {
		if f.outside[l.Link] {
			links++
		}
	}
	return links
}

// bans returns the request with what the others are on banned, the strictest
// first: all that; the links of members that have others, links between switches, and
// switches without members of the group; without these switches; both without the
// links of members; these links alone.
func (f *footprint) bans(req *Request) []Request {
	var all []Request
	add := func(switches []topology.NodeID, links ...map[topology.LinkID]bool) {
		r := *req
		r.Exclude = slices.Concat(req.Exclude, switches)
		r.ExcludeLinks = slices.Clone(req.ExcludeLinks)
		for _, set := range links {
			for l := range set {
				r.ExcludeLinks = append(r.ExcludeLinks, l)
			}
		}
		slices.Sort(r.ExcludeLinks)
		all = append(all, r)
	}
	own := map[topology.NodeID]bool{}   // switches with members
	rails := map[topology.LinkID]bool{} // links of members that have another one than those of the others
	leave := true                       // all members do
	shut, excluded := setOf(req.ExcludeLinks), setOf(req.Exclude)
	for _, m := range req.Members {
		other := false
		for _, l := range f.graph.Adjacent(m) {
			to := f.graph.Across(l, m)
			own[to] = true
			other = other || !f.outside[l] && !shut[l] && !excluded[to] && f.view.Usable(l)
		}
		leave = leave && other
		for _, l := range f.graph.Adjacent(m) {
			if other && f.outside[l] {
				rails[l] = true
			}
		}
	}
	if leave {
		add(f.switches, f.between, f.outside)
	}
	above := slices.DeleteFunc(slices.Clone(f.switches), func(n topology.NodeID) bool { return own[n] })
	if len(above) > 0 && len(rails) > 0 {
		add(above, f.between, rails)
	}
	if len(rails) > 0 {
		add(nil, f.between, rails)
	}
	if len(above) > 0 {
		add(above, f.between)
	}
	if len(f.between) > 0 {
		add(nil, f.between)
	}
	if len(rails) > 0 && len(f.between) > 0 {
		add(nil, rails)
	}
	return all
}

// verdict says how far a tree is apart from the others, and why not further.
func (f *footprint) verdict(shared int, why string) string {
	others := "other tree of its communicator"
	if f.trees > 1 {
		others = fmt.Sprintf("%d other trees of its communicator", f.trees)
	}
	if shared == 0 {
		return "; apart from the " + others
	}
	return fmt.Sprintf("; %s shared with the %s, since %s", count(shared, "link"), others, why)
}
