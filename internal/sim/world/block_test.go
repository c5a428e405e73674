package world

import (
	"encoding/binary"
	"math"

	"github.com/tributary-fabric/tributary/reduce"
)

// whole returns what fold, which is a tree, makes of an operation. In block
// floating point that is done chunk by chunk: fold gets and gives the mantissas
// of one chunk with its exponent, in one byte, behind them.
func whole(k *work, chunkBytes int, fold func(k *work) []byte) []byte {
	if k.op.Element != reduce.Block32 {
		return fold(k)
	}
	var out []byte
	for at := 0; at < k.bytes(); at += chunkBytes / 4 * 4 {
		end := min(at+chunkBytes/4*4, k.bytes())
		part := &work{op: k.op}
		part.op.Elements = (end - at) / 4
		for _, v := range k.in {
			b := make([]byte, end-at, end-at+1)
			exponent := reduce.EncodeBlock(b, v[at:end], len(k.in))
			part.in = append(part.in, append(b, byte(exponent)))
		}
		sum := fold(part)
		values, exponent := sum[:end-at], int8(sum[end-at])
		reduce.DecodeBlock(values, values, exponent)
		out = append(out, values...)
	}
	return out
}

// combineBlocks adds chunks as docs/functions.md says, one mantissa at a time.
func combineBlocks(in [][]byte) []byte {
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
