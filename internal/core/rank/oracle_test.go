package rank

import (
	"encoding/binary"
	"math"

	"github.com/tributary-fabric/tributary/reduce"
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

// addBlocks is the fold of chunks in block floating point: mantissas, and behind
// them their exponent in one byte.
func addBlocks(in [][]byte) []byte {
	last := len(in[0]) - 1
	greatest := math.MinInt8
	for _, v := range in {
		greatest = max(greatest, int(int8(v[last])))
	}
	var out []byte
	for at := 0; at < last; at += 4 {
		var sum int64
		for _, v := range in {
			m := float64(int32(binary.LittleEndian.Uint32(v[at:])))
			sum += int64(math.Floor(math.Ldexp(m, int(int8(v[last]))-greatest)))
		}
		out = binary.LittleEndian.AppendUint32(out, uint32(sum))
	}
	return append(out, byte(greatest))
}

// inBlocks returns what a tree of addBlocks makes of vectors of float32, chunk by
// chunk.
func inBlocks(in [][]byte, tree func(in [][]byte) []byte) (out []byte) {
	for at := 0; at < len(in[0]); at += chunkBytes {
		to := min(at+chunkBytes, len(in[0]))
		var chunks [][]byte
		for _, v := range in {
			b := make([]byte, to-at, to-at+1)
			exponent := reduce.EncodeBlock(b, v[at:to], len(in))
			chunks = append(chunks, append(b, byte(exponent)))
		}
		sum := tree(chunks)
		values := sum[:to-at]
		reduce.DecodeBlock(values, values, int8(sum[to-at]))
		out = append(out, values...)
	}
	return out
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
