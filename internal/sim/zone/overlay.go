package zone

import "github.com/tributary-fabric/tributary/internal/core/member"

// neighbours returns whom each node has a link with, by node.
func (w *World) neighbours() [][]int32 {
	all := make([][]int32, len(w.nodes))
	var peers []member.Peer
	for i := range w.nodes {
		if !w.nodes[i].up {
			continue
		}
		peers = w.nodes[i].core.Neighbours(peers[:0])
		for _, p := range peers {
			all[i] = append(all[i], int32(p.Node))
		}
	}
	return all
}

// eccentricity returns how far the node that is farthest from one is, in links;
// -1 if some node cannot be reached.
func eccentricity(neighbours [][]int32, from int, up int) int {
	far := make([]int, len(neighbours))
	next, reached, most := []int32{int32(from)}, 1, 0
	far[from] = 1
	for len(next) > 0 {
		i := next[0]
		next = next[1:]
		for _, j := range neighbours[i] {
			if far[j] == 0 {
				far[j] = far[i] + 1
				most = max(most, far[j]-1)
				reached++
				next = append(next, j)
			}
		}
	}
	if reached < up {
		return -1
	}
	return most
}

// Eccentricity returns how far the node is that is farthest from node, in links;
// -1 if the overlay is not connected.
func (w *World) Eccentricity(node int) int { return eccentricity(w.neighbours(), node, w.up) }

// Diameter returns the largest eccentricity of all; -1 if the overlay is not
// connected.
func (w *World) Diameter() int {
	all, most := w.neighbours(), 0
	for i := range w.nodes {
		if !w.nodes[i].up {
			continue
		}
		e := eccentricity(all, i, w.up)
		if e < 0 {
			return -1
		}
		most = max(most, e)
	}
	return most
}
