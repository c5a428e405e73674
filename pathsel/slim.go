package pathsel

import (
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/topology"
)

// slim has switches of a tree forward in place of reducing, one after the other,
// as long as that is possible and no worse by the criterion: each takes a switch's
// CPU and slots less. Of a switch with one child the two edges become one; of a
// root with two children, one becomes the root, and the edge of the other leads
// there.
func (p *Planner) slim(a asked, tree Tree, figures Figures) (Tree, Figures, bool) {
	stays := map[topology.NodeID]bool{} // it was tried
	slimmer := false
	for again := true; again; {
		again = false
		children := tree.AllChildren()
		for v := len(tree.Vertices) - 1; v >= 0 && !again; v-- {
			if stays[tree.Vertices[v].Switch] {
				continue
			}
			for _, w := range p.without(a, &tree, v, children) {
				t, ok := w.tree(w.at(w.root), make([]Leaf, len(tree.Leaves)))
				if !ok {
					continue
				}
				if f := p.Measure(a.view, a.load, *a.Request, t); f.Compare(figures, a.by) <= 0 {
					tree, figures, slimmer, again = t, f, true, true
					break
				}
			}
			if !again {
				stays[tree.Vertices[v].Switch] = true
			}
		}
	}
	return tree, figures, slimmer
}

// slimDown has the tree of a plan slimmed, where that is wanted.
func (p *Planner) slimDown(a asked, plan *Plan) {
	if !a.Slim {
		return
	}
	a.by = plan.Criterion
	before := len(plan.Tree.Vertices)
	tree, figures, slimmer := p.slim(a, plan.Tree, plan.Figures)
	if !slimmer {
		return
	}
	plan.Tree, plan.Figures, plan.Exact = tree, figures, false
	plan.Reason = fmt.Sprintf("%s; %s forwarding in place of reducing", p.reason(plan), switches(before-len(tree.Vertices)))
}

// slimmed is a tree without one of its switches.
type slimmed struct {
	*wiring
	root topology.NodeID
}

// without returns the trees in which vertex v only forwards, if it can.
func (p *Planner) without(a asked, t *Tree, v int, children [][]Child) (all []slimmed) {
	below := children[v]
	switch {
	case v > 0 && len(below) == 1:
		if w := p.join(a, t, v, t.Edges().OfVertex(v), below[0]); w != nil {
			all = append(all, slimmed{w, t.Root()})
		}
	case v == 0 && len(below) == 2:
		for i, c := range below {
			if c.Vertex < 0 {
				continue
			}
			n := t.Vertices[c.Vertex].Switch
			down := slices.Clone(t.Edges().OfVertex(int(c.Vertex)))
			slices.Reverse(down)
			if w := p.join(a, t, 0, down, below[1-i]); w != nil {
				all = append(all, slimmed{w, n})
			}
		}
	}
	return all
}

// join returns the edges of t when that of a child of vertex v goes on over more
// links, to where v's own was; nil if such an edge is not valid.
func (p *Planner) join(a asked, t *Tree, v int, on []topology.LinkID, child Child) *wiring {
	edges := t.Edges()
	from, links := t.Leaves[child.Lowest].Host, edges.OfLeaf(int(child.Lowest))
	if child.Vertex >= 0 {
		from, links = t.Vertices[child.Vertex].Switch, edges.OfVertex(int(child.Vertex))
	}
	links = append(slices.Clone(links), on...)
	if len(links) > maxRoute || !p.pinned(a.view, from, links) {
		return nil
	}
	gone := t.Vertices[v].Switch
	w := newWiring(p, a, len(t.Vertices)+len(t.Leaves))
	add := func(n topology.NodeID, links []topology.LinkID) {
		if n != gone && p.follow(n, links) != gone {
			w.join(n, links...)
		}
	}
	for i, x := range t.Vertices {
		if i > 0 {
			add(x.Switch, edges.OfVertex(i))
		}
	}
	for rank, l := range t.Leaves {
		add(l.Host, edges.OfLeaf(rank))
	}
	w.join(from, links...)
	return w
}
