package session

import (
	"encoding/binary"
	"math"

	"github.com/tributary-fabric/tributary/internal/check/reducetest"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// plans makes the same operations for all members, with vectors of random
// float32, whose sum depends on the order; some are summed in block floating
// point, compressed, or as integers. Some operations are pieces of longer ones, and some members do not want
// the result; of some, members hold and get parts.
func (w *world) plans(size, count int) [][]Operation {
	plans := make([][]Operation, size)
	for id := range count {
		if w.rng.IntN(2) == 0 {
			w.planParts(plans, uint64(id))
			continue
		}
		kind := wire.Collective(1 + w.rng.IntN(4))
		root, elements, inPlace := uint32(w.rng.IntN(size)), w.rng.IntN(60), w.rng.IntN(2) == 0
		element := []reduce.Type{reduce.Float32, reduce.Block32}[w.rng.IntN(2)]
		coding := w.rng.IntN(5)
		whole := Whole{IsSet: w.rng.IntN(3) == 0, Elements: elements + min(elements, 7), Serial: uint16(id)}
		for r := range size {
			o := Operation{ID: uint64(id), Collective: kind, Elements: elements, Element: element, Function: reduce.Sum}
			switch kind {
			case wire.Reduce:
				o.Root = root
			case wire.Broadcast:
				o.Root, o.Function, o.Element = root, reduce.NoFunction, reduce.Float32
			case wire.Barrier:
				o.Function, o.Element, o.Elements = reduce.NoFunction, 0, 0
				o.Last = id == count-1
			}
			if whole.IsSet && kind != wire.Barrier {
				o.Whole = whole
			}
			if kind == wire.Allreduce || kind == wire.Reduce {
				w.code(&o, coding, size)
			}
			o.Aside = kind != wire.Barrier && w.rng.IntN(4) == 0
			if o.Source(uint32(r)) || !kind.Copies() {
				for range o.Elements {
					if o.Vectors() == reduce.Float64 {
						o.In = binary.LittleEndian.AppendUint64(o.In, math.Float64bits(w.rng.NormFloat64()*math.Exp(8*w.rng.NormFloat64())))
						continue
					}
					o.In = binary.LittleEndian.AppendUint32(o.In, math.Float32bits(float32(w.rng.NormFloat64())*float32(math.Exp(8*w.rng.NormFloat64()))))
				}
			}
			if o.Sink(uint32(r)) {
				o.Out = make([]byte, o.Width()*o.Elements)
				if inPlace && len(o.In) > 0 {
					o.Out = o.In
				}
			}
			if o.Fixed.IsSet() {
				o.Marks = make([]byte, 4*o.Fixed.Marks(o.Elements))
				o.Fixed.Mark(o.Marks, o.In)
			}
			plans[r] = append(plans[r], o)
		}
	}
	return plans
}

// code has some operations turn their elements, in a group of that size.
func (w *world) code(o *Operation, coding, size int) {
	from := []reduce.Type{reduce.Float32, reduce.Float64}[coding%2]
	switch coding {
	case 0, 1:
		f, err := reduce.FixedOf(from, size+100*(o.Elements%2)) // as if there were more, with wider words
		if err != nil {
			w.t.Fatal(err)
		}
		o.Fixed, o.Element, o.Elements = f, f.Word(), 3*o.Elements
		o.Whole = Whole{}
	case 2:
		o.Compressed, o.Element = true, []reduce.Type{reduce.Float16, reduce.BFloat16}[o.Elements%2]
	}
}

// expected is the slow oracle: what rank's output of operation i must be.
func (w *world) expected(inputs [][]Operation, i int, rank uint32) []byte {
	o := inputs[rank][i]
	if o.Parts != nil {
		return expectedOfParts(inputs, i, rank)
	}
	if !o.Sink(rank) || o.Elements == 0 {
		return nil
	}
	if o.Collective == wire.Broadcast {
		return inputs[o.Root][i].In
	}
	in := make([][]byte, len(inputs))
	for r, plan := range inputs {
		in[r] = plan[i].In
	}
	switch {
	case o.Element == reduce.Block32:
		return reducetest.InBlocks(in, chunkBytes, reducetest.SumBlocks)
	case o.Fixed.IsSet():
		return reducetest.Fixed(o.Fixed, in)
	case o.Compressed:
		return reducetest.Compressed(o.Element, in, func(in [][]byte) []byte {
			kernel, err := reduce.KernelOf(reduce.Sum, o.Element)
			if err != nil {
				w.t.Fatal(err)
			}
			out := make([]byte, len(in[0]))
			kernel(out, in)
			return out
		})
	}
	var out []byte
	for e := range o.Elements {
		sum := math.Float32frombits(binary.LittleEndian.Uint32(inputs[0][i].In[4*e:]))
		for _, plan := range inputs[1:] {
			sum += math.Float32frombits(binary.LittleEndian.Uint32(plan[i].In[4*e:]))
		}
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(sum))
	}
	return out
}
