package world

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tributary-fabric/tributary/internal/check/reducetest"
	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// work is one collective operation of a group.
type work struct {
	op      session.Operation // without vectors and parts
	parts   []*session.Parts  // by rank, of an operation in parts
	in      [][]byte          // by rank, nil where it gives none
	out     [][]byte          // by rank: the result, as it was when the operation was completed
	lent    [][2][]byte       // by rank: the session's vectors, the caller's again when it is completed
	done    []bool
	started int              // members that have
	shape   reducetest.Shape // of all trees that may have carried it, if it is compressed
}

func (k *work) bytes() int {
	return k.op.Elements * k.op.Width()
}

func (k *work) gives(r uint32) bool { return !k.op.Collective.Copies() || k.op.Source(r) }

// takes returns the bytes of the vector that a rank gets.
func (k *work) takes(r int) (from, to int) {
	switch {
	case k.parts != nil:
		width := k.op.Element.Size()
		return k.parts[r].Wants.From * width, k.parts[r].Wants.To * width
	case k.op.Sink(uint32(r)):
		return 0, k.bytes()
	}
	return 0, 0
}

// The forms of operations in parts.
const (
	scatterForm = iota
	gatherForm
	allgatherForm
	reduceScatterForm
	partForms
)

// drawParts draws an operation of a form.
func drawParts(r *rand.Rand, form, n, longest int) *work {
	op := session.Operation{Collective: wire.Broadcast, Element: reduce.Type(1 + r.IntN(8))}
	root := r.IntN(n)
	if form == reduceScatterForm {
		op.Collective, op.Function, op.Element = wire.Reduce, reduce.Sum, reduce.Type(1+r.IntN(9))
	}
	counts := make([]int, n)
	for i := range counts {
		counts[i] = 1 + r.IntN(1+longest/n)
	}
	ends := make([]int, n)
	for i, c := range counts {
		op.Elements += c
		ends[i] = op.Elements
	}
	k := &work{op: op, in: make([][]byte, n), out: make([][]byte, n), lent: make([][2][]byte, n), done: make([]bool, n)}
	all := session.Range{To: op.Elements}
	for i := range n {
		own := session.Range{From: ends[i] - counts[i], To: ends[i]}
		p := &session.Parts{Mark: uint32(form), Said: op.Elements}
		switch form {
		case scatterForm:
			if p.Wants, p.Skip = own, (session.Range{From: ends[root] - counts[root], To: ends[root]}); i == root {
				p.Holds, p.Wants = all, session.Range{}
			}
		case gatherForm:
			if p.Holds, p.Ends, p.Skip = own, ends, (session.Range{From: ends[root] - counts[root], To: ends[root]}); i == root {
				p.Wants = all
			}
		case allgatherForm:
			p.Holds, p.Ends, p.Wants = own, ends, all
		default:
			p.Holds, p.Wants = all, own
		}
		width := op.Element.Size()
		k.in[i] = vector(r, op, (p.Holds.To-p.Holds.From)*width)
		k.lent[i] = [2][]byte{bytes.Clone(k.in[i]), make([]byte, (p.Wants.To-p.Wants.From)*width)}
		if p.Holds == own && p.Wants == all {
			copy(k.lent[i][1][own.From*width:], k.in[i]) // which is the caller's to do
		}
		k.parts = append(k.parts, p)
	}
	return k
}

// copied returns the vector of an operation that copies.
func (k *work) copied() []byte {
	if k.parts == nil {
		return k.in[k.op.Root]
	}
	whole := make([]byte, k.bytes())
	for r, p := range k.parts {
		copy(whole[p.Holds.From*k.op.Element.Size():], k.in[r])
	}
	return whole
}

// drawWork draws an operation of any collective, function, type, root and
// length for a group of n.
func drawWork(r *rand.Rand, n, longest int) *work {
	if n > 1 && r.IntN(3) == 0 {
		return drawParts(r, r.IntN(partForms), n, longest)
	}
	op := session.Operation{Collective: wire.Collective(1 + r.IntN(4))}
	if op.Collective != wire.Barrier {
		op.Element = reduce.Type(1 + r.IntN(9))
		op.Elements = r.IntN(1 + r.IntN(longest+1))
	}
	reduces := op.Collective == wire.Allreduce || op.Collective == wire.Reduce
	if reduces && r.IntN(4) == 0 {
		op.Function, op.Element = reduce.Sum, reduce.Float32+reduce.Type(r.IntN(4))
	}
	for reduces && op.Function == reduce.NoFunction {
		if op.Function = reduce.Function(1 + r.IntN(12)); !reduce.Defined(op.Function, op.Element) {
			op.Function = reduce.NoFunction
		}
	}
	if op.Collective == wire.Reduce || op.Collective == wire.Broadcast {
		op.Root = uint32(r.IntN(n))
	}
	if op.Collective == wire.Broadcast && op.Element == reduce.Block32 {
		op.Element = reduce.Float32
	}
	if op.Function == reduce.Sum {
		code(r, n, &op)
	}
	return newWork(r, n, op)
}

// code has some sums of floating-point numbers be those of integers, or of 16 bits.
func code(r *rand.Rand, n int, op *session.Operation) {
	switch {
	case (op.Element == reduce.Float32 || op.Element == reduce.Float64) && r.IntN(2) == 0:
		f, err := reduce.FixedOf(op.Element, n+100*r.IntN(2)) // or as if there were more
		if err != nil {
			panic(err)
		}
		op.Fixed, op.Element = f, f.Word()
	case (op.Element == reduce.Float16 || op.Element == reduce.BFloat16) && r.IntN(2) == 0:
		op.Compressed = true
	}
}

// newWork draws the vectors of an operation. Half of those that both give and
// take do so in place.
func newWork(r *rand.Rand, n int, op session.Operation) *work {
	k := &work{op: op, in: make([][]byte, n), out: make([][]byte, n), lent: make([][2][]byte, n), done: make([]bool, n)}
	for i := range n {
		if k.gives(uint32(i)) {
			k.in[i] = vector(r, op, k.bytes())
			k.lent[i][0] = bytes.Clone(k.in[i])
		}
		if op.Sink(uint32(i)) {
			k.lent[i][1] = make([]byte, k.bytes())
			if k.in[i] != nil && r.IntN(2) == 0 {
				k.lent[i][1] = k.lent[i][0]
			}
		}
	}
	return k
}

// vector draws a vector. Sums and products of its floating-point numbers depend
// on their order, and a few are not numbers.
func vector(r *rand.Rand, op session.Operation, size int) []byte {
	v := make([]byte, size)
	op.Element = op.Vectors()
	step := op.Element.Size()
	if op.Function.Located() {
		step = reduce.LocatedSize
	}
	for at := 0; at < size; at += step {
		var bits uint64
		odd := r.IntN(40) == 0
		switch x := math.Ldexp(1+r.Float64(), r.IntN(13)-6); {
		case (op.Element == reduce.Float32 || op.Element == reduce.Block32) && !odd:
			bits = uint64(math.Float32bits(float32(x)))
		case op.Element == reduce.Float64 && !odd:
			bits = math.Float64bits(x)
		case op.Element == reduce.Float16 && !odd:
			bits = uint64(reduce.F16From(float32(x)))
		case op.Element == reduce.BFloat16 && !odd:
			bits = uint64(reduce.BF16From(float32(x)))
		case odd:
			bits = r.Uint64()
		default:
			bits = r.Uint64() >> r.IntN(64) // equal values, too
		}
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], bits)
		copy(v[at:at+op.Element.Size()], word[:])
		if op.Function.Located() {
			binary.LittleEndian.PutUint64(v[at+8:], uint64(r.IntN(8)))
		}
	}
	return v
}

// input returns the command with which a member starts its part.
func (k *work) input(r uint32) endpoint.Input {
	op := k.op
	if k.parts != nil {
		op.Parts = k.parts[r]
	}
	op.In, op.Out = k.lent[r][0], k.lent[r][1]
	if op.Fixed.IsSet() {
		op.Marks = make([]byte, 4*op.Fixed.Marks(op.Elements))
		op.Fixed.Mark(op.Marks, op.In)
	}
	return endpoint.Input{Kind: endpoint.Start, Operation: &op}
}

// complete takes a member's result and spoils its vectors: whoever still reads
// or writes them is found out.
func (k *work) complete(r uint32) error {
	switch {
	case k.done[r]:
		return fmt.Errorf("operation %d is completed twice at rank %d", k.op.ID, r)
	case k.started < len(k.in):
		return fmt.Errorf("%v %d is completed at rank %d when %d of %d have started it", k.op.Collective, k.op.ID, r, k.started, len(k.in))
	}
	k.done[r] = true
	if from, to := k.takes(int(r)); from < to {
		k.out[r] = bytes.Clone(k.lent[r][1])
	}
	spoilVector(k.lent[r][1])
	if !inPlace(k.lent[r][0], k.lent[r][1]) {
		spoilVector(k.lent[r][0])
	}
	return nil
}

func spoilVector(v []byte) {
	for i := range v {
		v[i] ^= 0xa5
	}
}

// untouched reports an error if the vectors of a completed part have been
// written since, or its input before.
func (k *work) untouched(r uint32) error {
	given, taken := k.lent[r][0], k.lent[r][1]
	for i := range taken {
		if taken[i]^0xa5 != k.out[r][i] {
			return fmt.Errorf("operation %d: the output of rank %d was written after its completion", k.op.ID, r)
		}
	}
	for i := range given {
		if given[i]^0xa5 != k.in[r][i] && !inPlace(given, taken) {
			return fmt.Errorf("operation %d: the input of rank %d was written", k.op.ID, r)
		}
	}
	return nil
}

func inPlace(a, b []byte) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }
