package aggregate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tributary-fabric/tributary/reduce"
)

// Vector reduces vectors of one length, element by element: this node's own and
// then its children's by their numbers, whatever the order in which they come,
// so that a floating-point result does not depend on that. It is
// rounded after every vector. A child's vector
// that comes before its turn is copied, but where the function gives the same
// in any order, as all do on integers.
type Vector struct {
	kernel  reduce.Kernel
	result  []byte
	begun   bool // result holds something
	ordered bool
	turn    int            // ordered: the first whose vector is awaited
	early   map[int][]byte // ordered: of those behind it; nil: there is none
}

// NewVector returns a Vector of so many elements. It fails where
// reduce.KernelOf does.
func NewVector(f reduce.Function, t reduce.Type, elements int) (*Vector, error) {
	kernel, err := reduce.KernelOf(f, t)
	if err != nil {
		return nil, fmt.Errorf("aggregate: %w", err)
	}
	integer := t == reduce.Int32 || t == reduce.Int64 || t == reduce.Uint32 || t == reduce.Uint64
	return &Vector{
		kernel: kernel, result: make([]byte, elements*reduce.ElementSize(f, t)),
		ordered: !integer || f.Located(), turn: Own,
	}, nil
}

// VectorSize returns the bytes of a Vector's reply, in every subtree.
func VectorSize(f reduce.Function, t reduce.Type, elements int) int {
	return elements * reduce.ElementSize(f, t)
}

// Own is what Skip takes for this node itself.
const Own = -1

// Put adds this node's own vector. Errors wrap ErrBody.
func (v *Vector) Put(own []byte) error { return v.Add(Own, own) }

// Add implements Aggregator.
func (v *Vector) Add(child int, body []byte) error {
	if len(body) != len(v.result) {
		return wrong("a vector of %d bytes, want %d", len(body), len(v.result))
	}
	v.place(child, body)
	return nil
}

// Skip says that a child's vector, or this node's Own, does not come, so that
// those behind it need not wait.
func (v *Vector) Skip(child int) { v.place(child, nil) }

// place takes a vector if it is its turn, and what has waited for that.
func (v *Vector) place(child int, body []byte) {
	if v.ordered && child != v.turn {
		if v.early == nil {
			v.early = map[int][]byte{}
		}
		v.early[child] = slices.Clone(body)
		return
	}
	v.take(body)
	for v.turn++; len(v.early) > 0; v.turn++ {
		body, here := v.early[v.turn]
		if !here {
			return
		}
		delete(v.early, v.turn)
		v.take(body)
	}
}

func (v *Vector) take(body []byte) {
	switch {
	case body == nil:
	case v.begun:
		v.kernel(v.result, [][]byte{v.result, body})
	default:
		v.kernel(v.result, [][]byte{body})
		v.begun = true
	}
}

// AppendTo implements Aggregator.
func (v *Vector) AppendTo(dst []byte) []byte { return append(dst, v.Result()...) }

// Result returns the bytes that AppendTo appends; they are the Vector's own.
// What came early is taken now, by the numbers, whether or not those before it
// have come. Without any vector the elements are zero.
func (v *Vector) Result() []byte {
	for _, child := range slices.Sorted(maps.Keys(v.early)) {
		v.take(v.early[child])
	}
	clear(v.early)
	return v.result
}
