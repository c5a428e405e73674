package demo

import (
	"bytes"
	"fmt"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/ranktree"
	"github.com/tributary-fabric/tributary/reduce"
)

// foldSwitches returns what a tree of switches makes of the inputs: every
// switch reduces what its children give, in their order, rounding once.
func foldSwitches(kernel reduce.Kernel, t pathsel.Tree, inputs [][]byte) []byte {
	children := t.AllChildren()
	var at func(v int32) []byte
	at = func(v int32) []byte {
		var in [][]byte
		for _, c := range children[v] {
			if c.Vertex >= 0 {
				in = append(in, at(c.Vertex))
			} else {
				in = append(in, inputs[c.Lowest])
			}
		}
		return reduced(kernel, in)
	}
	return at(0)
}

// foldHosts returns what a tree of hosts makes of the inputs: every member
// reduces its own and what its children give.
func foldHosts(kernel reduce.Kernel, t ranktree.Tree, inputs [][]byte) []byte {
	var at func(rank int) []byte
	at = func(rank int) []byte {
		in := [][]byte{inputs[rank]}
		for _, child := range t.Children(rank) {
			in = append(in, at(child))
		}
		return reduced(kernel, in)
	}
	return at(0)
}

func reduced(kernel reduce.Kernel, in [][]byte) []byte {
	out := make([]byte, len(in[0]))
	kernel(out, in)
	return out
}

// A fold is what the inputs come to on one tree.
type fold struct {
	tree   string // for people
	result []byte
}

// checkFolds reports the first chunk of a result that is, bit by bit, that of
// none of the folds: an operation that changed its tree has chunks of each.
func checkFolds(result []byte, chunk int, folds []fold) error {
	for from := 0; from < len(result); from += chunk {
		to := min(from+chunk, len(result))
		known := false
		for _, f := range folds {
			known = known || bytes.Equal(result[from:to], f.result[from:to])
		}
		if !known {
			return fmt.Errorf("chunk %d has other bits than the reduction over %s", from/chunk, names(folds))
		}
	}
	return nil
}

func names(folds []fold) string {
	s := ""
	for i, f := range folds {
		if i > 0 {
			s += " or "
		}
		s += f.tree
	}
	return s
}
