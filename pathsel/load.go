package pathsel

import "github.com/tributary-fabric/tributary/topology"

// Load is what the trees of all groups use of one graph: how many trees each
// link and each switch carries, and the slots reserved on each switch. A nil
// *Load is a fabric without trees. It is not safe for concurrent use.
type Load struct {
	graph    *topology.Graph
	links    []linkUse
	switches []int32 // trees, by switch index
	slots    []int64 // reserved, by switch index
	members  []int32 // trees with members there and elsewhere, by switch index
	prices   *prices // nil until the first question for one
}

// linkUse is what one link has: two numbers side by side, since most links that a
// plan looks at are not in any cache.
type linkUse struct {
	trees int32
	grade int32 // of its prices
}

// NewLoad returns the load of g without trees.
func NewLoad(g *topology.Graph) *Load {
	return &Load{
		graph:    g,
		links:    make([]linkUse, g.Links()),
		switches: make([]int32, g.Switches()),
		slots:    make([]int64, g.Switches()),
		members:  make([]int32, g.Switches()),
	}
}

// Add counts a tree that reserves slots on each of its switches.
func (l *Load) Add(t Tree, slots int) { l.count(t, slots, 1) }

// Remove takes back what Add counted with the same arguments.
func (l *Load) Remove(t Tree, slots int) { l.count(t, slots, -1) }

// SetSlots says how many slots are reserved on switch n, in place of what Add
// and Remove have counted there: for who keeps the books of them elsewhere.
func (l *Load) SetSlots(n topology.NodeID, slots int) {
	l.setSlots(l.graph.SwitchIndex(n), int64(slots))
	if l.prices != nil {
		l.prices.settle(l)
	}
}

func (l *Load) setSlots(i int, slots int64) {
	if l.prices != nil {
		l.prices.moveSlots(l.graph, i, l.slots[i], slots)
	}
	l.slots[i] = slots
}

func (l *Load) countMembers(i int, sign int32) {
	if l.prices != nil {
		l.prices.moveMembers(l.graph, i, l.members[i], l.members[i]+sign)
	}
	l.members[i] += sign
}

func (l *Load) count(t Tree, slots int, sign int32) {
	for link := range t.Links() {
		use := &l.links[link]
		if l.prices != nil {
			l.prices.moveLink(use.grade, use.trees, use.trees+sign)
		}
		use.trees += sign
	}
	for v := range t.residences() {
		l.countMembers(l.graph.SwitchIndex(t.Vertices[v].Switch), sign)
	}
	for _, v := range t.Vertices {
		i := l.graph.SwitchIndex(v.Switch)
		if l.prices != nil {
			l.prices.moveCPU(l.graph, i, l.switches[i], l.switches[i]+sign)
		}
		l.switches[i] += sign
		l.setSlots(i, l.slots[i]+int64(sign)*int64(slots))
	}
	if l.prices != nil {
		l.prices.settle(l)
	}
}

// LinkTrees returns the number of trees over a link.
func (l *Load) LinkTrees(link topology.LinkID) int {
	if l == nil {
		return 0
	}
	return int(l.links[link].trees)
}

// SwitchTrees returns the number of trees on switch n.
func (l *Load) SwitchTrees(n topology.NodeID) int {
	if l == nil {
		return 0
	}
	return int(l.switches[l.graph.SwitchIndex(n)])
}

// UsedSlots returns the slots reserved on switch n.
func (l *Load) UsedSlots(n topology.NodeID) int {
	if l == nil {
		return 0
	}
	return int(l.slots[l.graph.SwitchIndex(n)])
}

// Peaks returns, by layer, what the most loaded link upwards from it, switch CPU
// of it and switch of it have: trees, trees and reserved slots.
func (l *Load) Peaks() Peaks {
	g := l.graph
	n := g.Layers()
	f := Peaks{Links: make([]float64, n), CPUs: make([]float64, n), Slots: make([]float64, n)}
	for id, link := range g.AllLinks() {
		lower := min(g.Layer(link.Ends[0].Node), g.Layer(link.Ends[1].Node))
		f.Links[lower] = max(f.Links[lower], float64(l.links[id].trees))
	}
	for i := range l.switches {
		layer := g.Layer(g.Switch(i))
		f.CPUs[layer] = max(f.CPUs[layer], float64(l.switches[i]))
		f.Slots[layer] = max(f.Slots[layer], float64(l.slots[i]))
	}
	return f
}
