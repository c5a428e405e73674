package endpoint

import (
	"encoding/binary"
	"math"
)

// A fold reduces vectors at one place in a tree, in the order of its children.
type fold func(in [][]byte) []byte

// add is the fold of vectors of float32: their sum, element by element.
func add(in [][]byte) []byte {
	sum := in[0]
	for _, v := range in[1:] {
		var next []byte
		for i := 0; i < len(v); i += 4 {
			x := math.Float32frombits(binary.LittleEndian.Uint32(sum[i:])) + math.Float32frombits(binary.LittleEndian.Uint32(v[i:]))
			next = binary.LittleEndian.AppendUint32(next, math.Float32bits(x))
		}
		sum = next
	}
	return sum
}

// overHosts folds in the order of the tree of hosts.
func (n *network) overHosts(f fold, in [][]byte, rank int) []byte {
	parts := [][]byte{in[rank]}
	for _, c := range n.cfg.Tree().Children(rank) {
		parts = append(parts, n.overHosts(f, in, c))
	}
	return f(parts)
}

// overSwitches folds in the order of the tree of switches.
func (n *network) overSwitches(f fold, in [][]byte) []byte {
	var parts [][]byte
	for l := 0; l < len(in); l += leafSize {
		parts = append(parts, f(in[l:min(l+leafSize, len(in))]))
	}
	return f(parts)
}
