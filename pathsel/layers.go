package pathsel

import (
	"github.com/tributary-fabric/tributary/internal/ground/disjoint"
	"github.com/tributary-fabric/tributary/topology"
)

// layers is the structure of a fabric whose links all join neighbouring layers,
// hosts being layer 0 and each host's switches layer 1. The nodes up to a layer
// fall into components, as the graph was built.
type layers struct {
	// own is, by node, the component of the nodes up to its layer that has it.
	// Those of layer 0 are the hosts.
	own []int32
	// above is, by component, the one of the next layer that holds it; -1: none.
	above []int32
	top   int
	// alike: all links have one latency.
	alike bool
}

// findLayers returns the structure of g, or nil where it has none.
func findLayers(g *topology.Graph) *layers {
	if g.Nodes() == 0 || !inLayers(g) {
		return nil
	}
	latency := map[int64]bool{}
	for _, link := range g.AllLinks() {
		if len(latency) < 2 {
			latency[int64(link.Latency)] = true
		}
	}
	s := &layers{own: make([]int32, g.Nodes()), top: g.Layers() - 1, alike: len(latency) <= 1}
	byLayer := make([][]topology.NodeID, s.top+1)
	for i := range g.Switches() {
		n := g.Switch(i)
		if g.Layer(n) == 0 {
			return nil
		}
		byLayer[g.Layer(n)] = append(byLayer[g.Layer(n)], n)
	}
	u := disjoint.New(g.Nodes())
	for h := range g.Hosts() {
		s.own[h] = int32(h)
		s.above = append(s.above, -1)
	}
	for _, nodes := range byLayer[1:] {
		s.addLayer(g, u, nodes)
	}
	return s
}

// inLayers reports whether all links join neighbouring layers.
func inLayers(g *topology.Graph) bool {
	for _, link := range g.AllLinks() {
		if a, b := g.Layer(link.Ends[0].Node), g.Layer(link.Ends[1].Node); a-b != 1 && b-a != 1 {
			return false
		}
	}
	return true
}

// addLayer numbers the components up to the layer of nodes.
func (s *layers) addLayer(g *topology.Graph, u disjoint.Sets, nodes []topology.NodeID) {
	for _, n := range nodes {
		for _, l := range g.Adjacent(n) {
			if below := g.Across(l, n); g.Layer(below) < g.Layer(n) {
				u.Join(int32(n), int32(below))
			}
		}
	}
	number := map[int32]int32{}
	for _, n := range nodes {
		leader := u.Find(int32(n))
		c, known := number[leader]
		if !known {
			c = int32(len(s.above))
			number[leader] = c
			s.above = append(s.above, -1)
		}
		s.own[n] = c
		for _, l := range g.Adjacent(n) {
			if below := g.Across(l, n); g.Layer(below) < g.Layer(n) {
				s.above[s.own[below]] = c
			}
		}
	}
}
