package reduce

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// Located is a value and where it comes from, often a rank or an index: an
// element of MinLoc and MaxLoc. In a vector it takes LocatedSize bytes.
type Located[T Element] struct {
	Value    T
	Location int64
}

// PutLocated writes the elements of v into dst as a vector. It panics if dst is
// not exactly len(v) times LocatedSize long.
func PutLocated[T Element](dst []byte, v []Located[T]) {
	checkLength(len(dst), len(v)*LocatedSize)
	size := unsafe.Sizeof(*new(T))
	for i := range v {
		at := dst[i*LocatedSize:][:LocatedSize]
		clear(at[:8])
		Put(at[:size], unsafe.Slice(&v[i].Value, 1))
		binary.LittleEndian.PutUint64(at[8:], uint64(v[i].Location))
	}
}

// GetLocated reads the vector src into v. It panics if src is not exactly
// len(v) times LocatedSize long.
func GetLocated[T Element](v []Located[T], src []byte) {
	checkLength(len(src), len(v)*LocatedSize)
	size := unsafe.Sizeof(*new(T))
	for i := range v {
		at := src[i*LocatedSize:][:LocatedSize]
		Get(unsafe.Slice(&v[i].Value, 1), at[:size])
		v[i].Location = int64(binary.LittleEndian.Uint64(at[8:]))
	}
}

// ordering ranks the values of one type by their bits, so that one loop serves
// all types.
type ordering struct {
	mask     uint64 // the bits of a value; those above are padding
	sign     uint64 // the bit of the sign, 0 for unsigned types
	float    bool
	infinity uint64 // the bits of positive infinity; floats only
	nan      uint64 // the canonical NaN; floats only
	reverse  uint64 // all bits set if the largest value is to rank first
}

func orderingOf(t Type, largest bool) ordering {
	o := ordering{mask: 1<<(8*t.Size()) - 1}
	o.sign = o.mask ^ o.mask>>1
	if largest {
		o.reverse = math.MaxUint64
	}
	switch t {
	case Uint32, Uint64:
		o.sign = 0
	case Float32:
		o.float, o.infinity, o.nan = true, inf32, nan32
	case Float64:
		o.float, o.infinity, o.nan = true, inf64, nan64
	case Float16:
		o.float, o.infinity, o.nan = true, infF16, nanF16
	case BFloat16:
		o.float, o.infinity, o.nan = true, infBF16, nanBF16
	default: // Int32, Int64
	}
	return o
}

// load returns the value at the start of b, canonical if it is a NaN, and its
// rank: the lower, the rather it is the result. The lowest rank, 0, is of NaNs
// only, among floating-point values.
func (o *ordering) load(b []byte) (value, rank uint64) {
	v := binary.LittleEndian.Uint64(b) & o.mask
	switch {
	case !o.float:
		return v, v ^ o.sign ^ o.reverse
	case v&^o.sign > o.infinity:
		return o.nan, 0
	case v&o.sign != 0:
		return v, v ^ o.mask ^ o.reverse // more negative with every higher bit
	}
	return v, v ^ o.sign ^ o.reverse
}

func locatedKernel(f Function, t Type) Kernel {
	o := orderingOf(t, f == MaxLoc)
	return func(dst []byte, in [][]byte) { foldLocated(&o, dst, in) }
}

// foldLocated reduces in to dst, an element at a time over all vectors: an
// element is as long as a load and needs no accumulators in memory.
func foldLocated(o *ordering, dst []byte, in [][]byte) {
	check(dst, in, LocatedSize)
	for at := 0; at < len(dst); at += LocatedSize {
		e := in[0][at:][:LocatedSize]
		value, rank := o.load(e)
		location := int64(binary.LittleEndian.Uint64(e[8:]))
		for _, v := range in[1:] {
			e := v[at:][:LocatedSize]
			otherValue, otherRank := o.load(e)
			otherLocation := int64(binary.LittleEndian.Uint64(e[8:]))
			if otherRank < rank || otherRank == rank && otherLocation < location {
				value, rank, location = otherValue, otherRank, otherLocation
			}
		}
		binary.LittleEndian.PutUint64(dst[at:], value)
		binary.LittleEndian.PutUint64(dst[at+8:], uint64(location))
	}
}
