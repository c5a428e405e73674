package picture

import (
	"fmt"

	"github.com/tributary-fabric/tributary/internal/ground/disjoint"
	"github.com/tributary-fabric/tributary/topology"
)

// kin is what the nodes have in common that one box of an outline stands for.
type kin struct {
	part   int32 // of the fabric: see partition
	layer  int
	isHost bool
	role   role
}

// partition says to which part of the fabric a node belongs.
type partition struct {
	part func(topology.NodeID) int32
	most int // boxes that may be drawn of it
	says string
}

// addOutline draws a fabric that is too large, and has no tree that could be drawn
// in its place: with boxes for what is alike, as many as can be seen.
func (s *sheet) addOutline() {
	g := s.scene.View.Graph()
	for _, p := range []partition{
		{s.above, MaxNodes, "All hosts of a switch are drawn as one box."},
		{s.beneathTop(), MaxBoxes, "A box stands for the nodes of one layer that are in the same state, in each part that only the highest layer joins to others."},
		{func(topology.NodeID) int32 { return 0 }, g.Nodes(), "A box stands for the nodes of one layer that are in the same state."},
	} {
		if classes, order := s.classes(p); len(order) <= p.most {
			s.note = fmt.Sprintf("The fabric's %d hosts and %d switches are too many to be drawn one by one. %s The picture of a group has its tree.", g.Hosts(), g.Switches(), p.says)
			s.addClasses(classes, order)
			return
		}
	}
}

// classes groups all nodes, and gives the groups in the order of their first nodes.
func (s *sheet) classes(p partition) (all map[kin][]topology.NodeID, order []kin) {
	g := s.scene.View.Graph()
	all = map[kin][]topology.NodeID{}
	for n := range topology.NodeID(g.Nodes()) {
		k := kin{part: p.part(n), layer: g.Layer(n), isHost: g.IsHost(n), role: s.stateOf(n)}
		if all[k] == nil {
			if order = append(order, k); len(order) > p.most {
				return nil, order
			}
		}
		all[k] = append(all[k], n)
	}
	return all, order
}

// stateOf returns a node's role in a scene without a tree.
func (s *sheet) stateOf(n topology.NodeID) role {
	switch {
	case !s.scene.View.NodeUp(n):
		return broken
	case s.scene.View.Graph().IsSwitch(n):
		return s.besideTree(n)
	}
	return bystander
}

// above is the partition by the switch that a host is linked to first; a switch is
// a part of its own.
func (s *sheet) above(n topology.NodeID) int32 {
	g := s.scene.View.Graph()
	if g.IsHost(n) {
		if links := g.Adjacent(n); len(links) > 0 {
			return int32(g.Across(links[0], n))
		}
	}
	return int32(n)
}

// beneathTop is the partition into what hangs together without the highest layer,
// which is a part of its own.
func (s *sheet) beneathTop() func(topology.NodeID) int32 {
	g := s.scene.View.Graph()
	top, parts := g.Layers()-1, disjoint.New(g.Nodes())
	for _, l := range g.AllLinks() {
		if a, b := l.Ends[0].Node, l.Ends[1].Node; g.Layer(a) < top && g.Layer(b) < top {
			parts.Join(int32(a), int32(b))
		}
	}
	return func(n topology.NodeID) int32 {
		if g.Layer(n) == top {
			return -1
		}
		return parts.Find(int32(n))
	}
}

// addClasses draws a box for each class, and the links between two of them as one,
// or as two where some are down.
func (s *sheet) addClasses(all map[kin][]topology.NodeID, order []kin) {
	g := s.scene.View.Graph()
	for _, k := range order {
		nodes := all[k]
		if len(nodes) == 1 {
			s.addNode(nodes[0], bystander)
			continue
		}
		for _, n := range nodes {
			s.byNode[n] = len(s.boxes)
		}
		s.boxes = append(s.boxes, box{
			node: nodes[0], name: fmt.Sprintf("%s and %d more", g.Name(nodes[0]), len(nodes)-1), label: s.classLabel(k, nodes),
			role: k.role, down: k.role == broken, isHost: k.isHost, layer: k.layer, leaf: -1,
		})
	}
	type strand struct {
		lower, upper int
		dead         bool
	}
	seen := map[strand]bool{}
	for id, l := range g.AllLinks() {
		c := strand{s.byNode[l.Ends[0].Node], s.byNode[l.Ends[1].Node], !s.scene.View.Usable(id)}
		if c.lower > c.upper {
			c.lower, c.upper = c.upper, c.lower
		}
		if c.lower == c.upper || seen[c] {
			continue
		}
		seen[c] = true
		w := wire{link: topology.NoLink, lower: c.lower, upper: c.upper}
		if c.dead {
			w.course = dead
		}
		s.wires = append(s.wires, w)
	}
}

// classLabel says for how many nodes a box stands, in which state, and which.
func (s *sheet) classLabel(k kin, nodes []topology.NodeID) string {
	g := s.scene.View.Graph()
	what := "switches"
	if k.isHost {
		what = "hosts"
	}
	label := fmt.Sprintf("%d %s", len(nodes), what)
	if words := s.standing(nodes[0]).words(); k.role == broken {
		label += ", failed"
	} else if words != "" {
		label += ", " + words
	}
	between := " to "
	if len(nodes) == 2 {
		between = ", "
	}
	return label + "\n" + g.Name(nodes[0]) + between + g.Name(nodes[len(nodes)-1])
}
