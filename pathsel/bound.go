package pathsel

import (
	"github.com/tributary-fabric/tributary/topology"
)

// Peaks are, by layer, the trees on the most loaded link upwards from it and on
// the most loaded switch CPU of it, and the slots reserved on the switch with
// the most: what there is (Load.Peaks), or what there must be at least.
type Peaks struct {
	Links, CPUs, Slots []float64
}

// Floors returns lower bounds of what any placement of groups must load in a
// fabric of layers, each group with its members and the slots that its tree
// reserves; false where the fabric has none. They follow from cuts: a group with
// members in and outside a component crosses one of the links above it, and has
// one of its uppermost switches. They hold for groups that are spread over
// several trees in shares, too. Links and switches count as they were built.
func (p *Planner) Floors(groups [][]topology.NodeID, slots []int) (Peaks, bool) {
	if p.layers == nil {
		return Peaks{}, false
	}
	s := p.layers
	layers := s.top + 1
	f := Peaks{Links: make([]float64, layers), CPUs: make([]float64, layers), Slots: make([]float64, layers)}
	n := len(s.above)
	crossing, serving, reserved := make([]float64, n), make([]float64, n), make([]float64, n)
	seen := make([]int32, n)
	for i, members := range groups {
		p.count(members, int32(i)+1, float64(slots[i]), seen, crossing, serving, reserved)
	}
	up, top, layer := p.widths()
	for c := range n {
		at := layer[c]
		if up[c] > 0 {
			f.Links[at] = max(f.Links[at], crossing[c]/up[c])
		}
		if top[c] > 0 {
			f.CPUs[at] = max(f.CPUs[at], serving[c]/top[c])
			f.Slots[at] = max(f.Slots[at], reserved[c]/top[c])
		}
	}
	return f, true
}

// count adds one group to the components that it has members in.
func (p *Planner) count(members []topology.NodeID, round int32, slots float64, seen []int32, crossing, serving, reserved []float64) {
	s := p.layers
	level := make([]int32, len(members))
	for i, m := range members {
		level[i] = int32(m)
	}
	for len(level) > 0 {
		// All components of one layer that have members; with one, it holds all.
		if len(level) == 1 && !p.graph.IsHost(topology.NodeID(level[0])) {
			serving[level[0]]++
			reserved[level[0]] += slots
			return
		}
		next := level[:0:0]
		for _, c := range level {
			crossing[c]++
			if !p.graph.IsHost(topology.NodeID(c)) {
				serving[c]++
				reserved[c] += slots
			}
			above := s.above[c]
			if above < 0 {
				return
			}
			if seen[above] != round {
				seen[above] = round
				next = append(next, above)
			}
		}
		level = next
	}
}

// widths returns, by component, the links upwards from it, its uppermost
// switches, and their layer.
func (p *Planner) widths() (up, top []float64, layer []int) {
	s, g := p.layers, p.graph
	up, top, layer = make([]float64, len(s.above)), make([]float64, len(s.above)), make([]int, len(s.above))
	for n := range topology.NodeID(g.Nodes()) {
		layer[s.own[n]] = g.Layer(n)
		if g.IsSwitch(n) {
			top[s.own[n]]++
		}
		for _, l := range g.Adjacent(n) {
			if g.Layer(g.Across(l, n)) > g.Layer(n) {
				up[s.own[n]]++
			}
		}
	}
	return up, top, layer
}
