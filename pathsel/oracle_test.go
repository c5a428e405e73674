package pathsel

import (
	"math"
	"math/bits"

	"github.com/tributary-fabric/tributary/topology"
)

// plain is a request's fabric in the simplest form: a slow, separate way to the
// same answers, for fabrics of up to 20 usable switches.
type plain struct {
	switches []topology.NodeID
	children []int
	near     []uint32 // by switch: bitmask of its neighbours
	members  []uint32 // by rank: bitmask of the switches it is linked to
}

func newPlain(view topology.View, load *Load, req Request) *plain {
	g := view.Graph()
	bad := map[topology.NodeID]bool{}
	for _, n := range req.Exclude {
		bad[n] = true
	}
	badLink := map[topology.LinkID]bool{}
	for _, l := range req.ExcludeLinks {
		badLink[l] = true
	}
	p, bit := &plain{}, map[topology.NodeID]int{}
	for n := range topology.NodeID(g.Nodes()) {
		c := view.Capability(n)
		if g.IsHost(n) || bad[n] || !view.NodeUp(n) || c.Children < 1 || c.Chunk < req.ChunkBytes ||
			c.Functions&req.Functions != req.Functions || c.Types&req.Types != req.Types ||
			c.Slots-load.UsedSlots(n) < max(1, req.Slots) {
			continue
		}
		bit[n] = len(p.switches)
		p.switches, p.children = append(p.switches, n), append(p.children, c.Children)
	}
	p.near = make([]uint32, len(p.switches))
	p.members = make([]uint32, len(req.Members))
	rank := map[topology.NodeID]int{}
	for i, m := range req.Members {
		rank[m] = i
	}
	for l, link := range g.AllLinks() {
		if badLink[l] || !view.Usable(l) {
			continue
		}
		for end := range 2 {
			from, to := link.Ends[end].Node, link.Ends[1-end].Node
			j, ok := bit[to]
			if !ok {
				continue
			}
			if i, ok := bit[from]; ok {
				p.near[i] |= 1 << j
			} else if i, ok := rank[from]; ok {
				p.members[i] |= 1 << j
			}
		}
	}
	return p
}

// best returns the fewest hops, and at these the least depth, of all
// shortest-path trees of all roots; ok is false if there is none.
func (p *plain) best() (hops, depth int, ok bool) {
	hops = math.MaxInt
	for root := range p.switches {
		h, d := p.from(root)
		if h < hops || h == hops && d < depth {
			hops, depth = h, d
		}
	}
	return hops, depth, hops < math.MaxInt
}

// from enumerates all shortest-path trees of one root: every combination of
// parents, whatever it costs.
func (p *plain) from(root int) (hops, depth int) {
	dist := p.distances(root)
	pending := make([][]int, len(p.switches)+2) // by level: members, as ^rank
	for rank, near := range p.members {
		d := math.MaxInt
		for s := range p.switches {
			if near>>s&1 == 1 {
				d = min(d, dist[s])
			}
		}
		if d == math.MaxInt {
			return math.MaxInt, 0
		}
		pending[d+1] = append(pending[d+1], ^rank)
		depth = max(depth, d+1)
	}
	used := make([]int, len(p.switches))
	fewest := math.MaxInt
	var place func(level, k, switches int)
	place = func(level, k, switches int) {
		if level == 0 {
			fewest = min(fewest, switches-1+len(p.members))
			return
		}
		if k == len(pending[level]) {
			place(level-1, 0, switches)
			return
		}
		x := pending[level][k]
		var near uint32
		if x < 0 {
			near = p.members[^x]
		} else {
			near = p.near[x]
		}
		for s := range p.switches {
			if near>>s&1 == 0 || dist[s] != level-1 || used[s] == p.children[s] {
				continue
			}
			fresh := used[s] == 0 && s != root
			used[s]++
			if fresh {
				pending[level-1] = append(pending[level-1], s)
				place(level, k+1, switches+1)
				pending[level-1] = pending[level-1][:len(pending[level-1])-1]
			} else {
				place(level, k+1, switches)
			}
			used[s]--
		}
	}
	place(depth, 0, 1)
	return fewest, depth
}

func (p *plain) distances(root int) []int {
	dist := make([]int, len(p.switches))
	for i := range dist {
		dist[i] = math.MaxInt
	}
	dist[root] = 0
	for range p.switches {
		for i, near := range p.near {
			for j := range p.switches {
				if near>>j&1 == 1 && dist[j] != math.MaxInt && dist[j]+1 < dist[i] {
					dist[i] = dist[j] + 1
				}
			}
		}
	}
	return dist
}

// steiner returns the fewest hops of any tree at all, children limits aside: the
// smallest connected set of switches beside which every member lies.
func (p *plain) steiner() (hops int, ok bool) {
	fewest := math.MaxInt
	for set := uint32(1); set < 1<<len(p.switches); set++ {
		n := bits.OnesCount32(set)
		if n < fewest && p.touches(set) && p.connected(set) {
			fewest = n
		}
	}
	return fewest - 1 + len(p.members), fewest < math.MaxInt
}

func (p *plain) touches(set uint32) bool {
	for _, near := range p.members {
		if near&set == 0 {
			return false
		}
	}
	return true
}

func (p *plain) connected(set uint32) bool {
	reached := set & -set
	for {
		more := reached
		for rest := reached; rest != 0; rest &= rest - 1 {
			more |= p.near[bits.TrailingZeros32(rest)] & set
		}
		if more == reached {
			return reached == set
		}
		reached = more
	}
}
