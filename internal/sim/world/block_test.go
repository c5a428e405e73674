package world

import (
	"github.com/tributary-fabric/tributary/internal/check/reducetest"
	"github.com/tributary-fabric/tributary/reduce"
)

// whole returns what fold, which is a tree, makes of an operation. If it is compressed, fold gets and gives numbers
// of 16 bits. In block
// floating point that is done chunk by chunk: fold gets and gives the mantissas
// of one chunk with its exponent, in one byte, behind them.
func whole(k *work, chunkBytes int, fold func(k *work) []byte) []byte {
	if k.op.Compressed {
		return reducetest.Compressed(k.op.Element, k.in, func(in [][]byte) []byte { return fold(&work{op: k.op, in: in}) })
	}
	if k.op.Element != reduce.Block32 {
		return fold(k)
	}
	return reducetest.InBlocks(k.in, chunkBytes/4*4, func(chunks [][]byte) []byte {
		part := &work{op: k.op, in: chunks}
		part.op.Elements = (len(chunks[0]) - 1) / 4
		return fold(part)
	})
}
