package pathsel

import (
	"github.com/tributary-fabric/tributary/topology"
)

// edge is a way from one point of a subgraph to a switch of it.
type edge struct {
	to   int32
	link topology.LinkID
	load int32 // trees on the link
}

// subgraph is the part of a fabric that one request can use: its usable switches,
// numbered densely, the best usable link between any two of them, and every
// member's links to them. Points below len(switches) are those switches; point
// len(switches)+rank is a member.
type subgraph struct {
	asked

	index    []int32           // by switch index; -1: not usable
	switches []topology.NodeID // the usable ones, ascending
	room     []int32           // children that each can serve
	busy     []int32           // trees on each
	offset   []int32           // point p has edges[offset[p]:offset[p+1]]
	edges    []edge

	fixed []int32 // by switch: members that have no other switch
}

func newSubgraph(a asked) *subgraph {
	g := a.view.Graph()
	f := &subgraph{asked: a, index: make([]int32, g.Switches())}
	for i := range f.index {
		f.index[i] = -1
		n := g.Switch(i)
		if !f.serves(n) || f.crowds(n) {
			continue
		}
		f.index[i] = int32(len(f.switches))
		f.switches = append(f.switches, n)
		f.room = append(f.room, int32(f.view.Capability(n).Children))
		f.busy = append(f.busy, int32(f.load.SwitchTrees(n)))
	}
	f.joinSwitches()
	return f
}

// shortage is what keeps a switch from serving; a zero resource: nothing.
type shortage struct {
	resource   Resource
	free, need int
}

// serves reports whether a switch can be a vertex of the tree.
func (a *asked) serves(n topology.NodeID) bool { return a.shortage(n).resource == 0 }

func (a *asked) shortage(n topology.NodeID) shortage {
	c := a.view.Capability(n)
	free := c.Slots - a.load.UsedSlots(n)
	switch {
	case a.excluded[n] || a.idle[n] || !a.view.NodeUp(n):
		return shortage{resource: Path}
	case !c.Functions.Covers(a.Functions):
		return shortage{Functions, int(c.Functions), int(a.Functions)}
	case !c.Types.Covers(a.Types):
		return shortage{Types, int(c.Types), int(a.Types)}
	case a.Protected && c.Plain:
		return shortage{Protection, 0, 1}
	case c.Speed.None() || a.least > 0 && a.pace(n) < a.least:
		return shortage{Speed, 0, 1}
	case c.Chunk < a.ChunkBytes:
		return shortage{Chunk, c.Chunk, a.ChunkBytes}
	case c.Children < 1:
		return shortage{Children, c.Children, 1}
	case free < max(a.Slots, 1):
		return shortage{Slots, max(free, 0), max(a.Slots, 1)}
	}
	return shortage{}
}

// usable returns the switch across l from n, if both it and l can be used.
func (f *subgraph) usable(l topology.LinkID, n topology.NodeID) (int32, bool) {
	g := f.view.Graph()
	m := g.Across(l, n)
	if !g.IsSwitch(m) {
		return -1, false
	}
	i := f.index[g.SwitchIndex(m)]
	if i < 0 || !f.view.LinkUp(l) || f.excludesLink(l) || f.narrow(l) {
		return -1, false
	}
	return i, true
}

// narrow reports whether a link is below the floor, and crowds whether a switch
// would give more of its free slots than the ceiling.
func (a *asked) narrow(l topology.LinkID) bool {
	return a.floor > 0 && width(a.view, a.load, l, a.view.Graph().Link(l).LinkSpec) < a.floor
}

func (a *asked) crowds(n topology.NodeID) bool {
	return a.ceiling > 0 && share(a.view.Capability(n), a.load.UsedSlots(n), a.Request, 0) > a.ceiling
}

// groupHash returns the hash of a group.
func groupHash(members []topology.NodeID) (h uint64) {
	for _, m := range members {
		h = mix(h, uint64(m))
	}
	return h
}

// joinSwitches fills the edges of the switches.
func (f *subgraph) joinSwitches() {
	g := f.view.Graph()
	seen := newPlaces(len(f.switches))
	f.offset = append(make([]int32, 0, len(f.switches)+len(f.Members)+1), 0)
	for _, n := range f.switches {
		seen.clear()
		for _, l := range g.Adjacent(n) {
			if i, ok := f.usable(l, n); ok {
				f.addEdge(seen, edge{to: i, link: l, load: int32(f.load.LinkTrees(l))})
			}
		}
		f.offset = append(f.offset, int32(len(f.edges)))
	}
}

// addEdge appends e to the point in the making, unless a parallel link is
// better: less used, or equally and of the group's choice.
func (f *subgraph) addEdge(seen *places, e edge) {
	at, parallel := seen.get(e.to)
	if !parallel {
		seen.set(e.to, int32(len(f.edges)))
		f.edges = append(f.edges, e)
		return
	}
	old := f.edges[at]
	if e.load < old.load || e.load == old.load && mix(f.hash, uint64(e.link)) < mix(f.hash, uint64(old.link)) {
		f.edges[at] = e
	}
}

// attachMembers fills the edges of the members, or refuses: a member without a
// usable switch, or more members on a switch than it can serve.
func (f *subgraph) attachMembers() *Refusal {
	g := f.view.Graph()
	seen := newPlaces(len(f.switches))
	f.fixed = make([]int32, len(f.switches))
	for rank, m := range f.Members {
		seen.clear()
		if f.view.NodeUp(m) {
			for _, l := range g.Adjacent(m) {
				if i, ok := f.usable(l, m); ok {
					f.addEdge(seen, edge{to: i, link: l, load: int32(f.load.LinkTrees(l))})
				}
			}
		}
		f.offset = append(f.offset, int32(len(f.edges)))
		switch ways := f.at(f.member(rank)); len(ways) {
		case 0:
			return f.refuseMember(rank)
		case 1:
			f.fixed[ways[0].to]++
		}
	}
	for i, members := range f.fixed {
		if members > f.room[i] {
			return f.refuseSwitch(f.switches[i], shortage{Children, int(f.room[i]), int(members)})
		}
	}
	return nil
}

// member returns the point of a rank.
func (f *subgraph) member(rank int) int32 { return int32(len(f.switches) + rank) }

// rank returns the rank of a point, below zero for switches.
func (f *subgraph) rank(point int32) int { return int(point) - len(f.switches) }

// at returns the edges of a point.
func (f *subgraph) at(point int32) []edge { return f.edges[f.offset[point]:f.offset[point+1]] }

// places is a map from small integers that is emptied at no cost.
type places struct {
	round  int32
	rounds []int32
	value  []int32
}

func newPlaces(n int) *places {
	return &places{round: 1, rounds: make([]int32, n), value: make([]int32, n)}
}

func (p *places) clear() { p.round++ }

func (p *places) get(i int32) (int32, bool) { return p.value[i], p.rounds[i] == p.round }

func (p *places) set(i, value int32) { p.rounds[i], p.value[i] = p.round, value }
