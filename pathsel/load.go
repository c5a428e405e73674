package pathsel

import "github.com/tributary-fabric/tributary/topology"

// Load is what the trees of all groups use of one graph: how many trees each
// link and each switch carries, and the slots reserved on each switch. A nil
// *Load is a fabric without trees. It is not safe for concurrent use.
type Load struct {
	graph    *topology.Graph
	links    []int32 // trees, by link
	switches []int32 // trees, by switch index
	slots    []int64 // reserved, by switch index
}

// NewLoad returns the load of g without trees.
func NewLoad(g *topology.Graph) *Load {
	return &Load{
		graph:    g,
		links:    make([]int32, g.Links()),
		switches: make([]int32, g.Switches()),
		slots:    make([]int64, g.Switches()),
	}
}

// Add counts a tree that reserves slots on each of its switches.
func (l *Load) Add(t Tree, slots int) { l.count(t, slots, 1) }

// Remove takes back what Add counted with the same arguments.
func (l *Load) Remove(t Tree, slots int) { l.count(t, slots, -1) }

func (l *Load) count(t Tree, slots int, sign int32) {
	for link := range t.Links() {
		l.links[link] += sign
	}
	for _, v := range t.Vertices {
		i := l.graph.SwitchIndex(v.Switch)
		l.switches[i] += sign
		l.slots[i] += int64(sign) * int64(slots)
	}
}

// LinkTrees returns the number of trees over a link.
func (l *Load) LinkTrees(link topology.LinkID) int {
	if l == nil {
		return 0
	}
	return int(l.links[link])
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
