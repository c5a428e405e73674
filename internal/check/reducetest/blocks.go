// Package reducetest has plain, slow reductions to compare with in tests.
package reducetest

import (
	"encoding/binary"
	"math"

	"github.com/tributary-fabric/tributary/reduce"
)

// SumBlocks adds chunks in block floating point as docs/functions.md says, one
// mantissa at a time: mantissas, and behind them their exponent in one byte.
func SumBlocks(in [][]byte) []byte {
	last := len(in[0]) - 1
	greatest := math.MinInt8
	for _, v := range in {
		greatest = max(greatest, int(int8(v[last])))
	}
	out := make([]byte, 0, last+1)
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

// InBlocks returns what members of a group get that add vectors of float32 in
// block floating point, in chunks of so many bytes, a multiple of four: fold,
// which may be a tree of SumBlocks, adds one chunk of them all.
func InBlocks(in [][]byte, chunkBytes int, fold func(in [][]byte) []byte) (out []byte) {
	for at := 0; at < len(in[0]); at += chunkBytes {
		end := min(at+chunkBytes, len(in[0]))
		var chunks [][]byte
		for _, v := range in {
			b := make([]byte, end-at, end-at+1)
			exponent := reduce.EncodeBlock(b, v[at:end], len(in))
			chunks = append(chunks, append(b, byte(exponent)))
		}
		sum := fold(chunks)
		values := sum[:end-at]
		reduce.DecodeBlock(values, values, int8(sum[end-at]))
		out = append(out, values...)
	}
	return out
}
