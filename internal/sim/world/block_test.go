package world

import (
	"github.com/tributary-fabric/tributary/internal/check/reducetest"
	"github.com/tributary-fabric/tributary/reduce"
)

// whole returns what fold, which is a tree, makes of an operation. In block
// floating point that is done chunk by chunk: fold gets and gives the mantissas
// of one chunk with its exponent, in one byte, behind them.
func whole(k *work, chunkBytes int, fold func(k *work) []byte) []byte {
	if k.op.Element != reduce.Block32 {
		return fold(k)
	}
	return reducetest.InBlocks(k.in, chunkBytes/4*4, func(chunks [][]byte) []byte {
		part := &work{op: k.op, in: chunks}
		part.op.Elements = (len(chunks[0]) - 1) / 4
		return fold(part)
	})
}
