package reducetest

import (
	"github.com/tributary-fabric/tributary/reduce"
)

// Fixed returns what members of a group get that sum vectors of floating-point numbers as integers. What that
// has to be, tests of package reduce check.
func Fixed(f reduce.Fixed, in [][]byte) []byte {
	n := len(in[0]) / f.From().Size()
	marks, own := make([]byte, 4*f.Marks(n)), make([]byte, 4*f.Marks(n))
	words, sum := make([]byte, n*f.Word().Size()), make([]byte, n*f.Word().Size())
	for _, v := range in {
		f.Mark(own, v)
		apply(reduce.Max, reduce.Uint32, marks, own)
	}
	for _, v := range in {
		f.Encode(words, v, marks, 0)
		apply(reduce.Sum, f.Word(), sum, words)
	}
	out := make([]byte, len(in[0]))
	f.Decode(out, sum, marks, 0)
	return out
}

func apply(f reduce.Function, t reduce.Type, to, by []byte) {
	kernel, err := reduce.KernelOf(f, t)
	if err != nil {
		panic(err)
	}
	kernel(to, [][]byte{to, by})
}

// Compressed returns what members get that round vectors of float32 to a type of 16 bits, and whose roundings fold,
// a tree, sums.
func Compressed(t reduce.Type, in [][]byte, fold func(in [][]byte) []byte) []byte {
	rounded := make([][]byte, len(in))
	for i, v := range in {
		rounded[i] = make([]byte, len(v)/2)
		reduce.Narrow(t, rounded[i], v)
	}
	out := make([]byte, len(in[0]))
	reduce.Widen(t, out, fold(rounded))
	return out
}
