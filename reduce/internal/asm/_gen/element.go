package main

// element is a type of values.
type element int

const (
	int32s element = iota
	int64s
	uint32s
	uint64s
	float32s
	float64s
	float16s
	bfloat16s
)

// String returns the type's part of a kernel's name.
func (t element) String() string {
	return [...]string{"Int32", "Int64", "Uint32", "Uint64", "Float32", "Float64", "Float16", "BFloat16"}[t]
}

// double reports the types of 64 bits.
func (t element) double() bool { return t == int64s || t == uint64s || t == float64s }

func (t element) isFloat() bool { return t >= float32s }

func (t element) unsigned() bool { return t == uint32s || t == uint64s }

// kernels lists all kernels. Where one serves several types, because the bits
// of the result are the same, it has the name of the first.
func kernels() (all []kernel) {
	for _, t := range []element{int32s, int64s, float32s, float64s, float16s, bfloat16s} {
		all = append(all, sum(t), product(t))
	}
	for t := int32s; t <= bfloat16s; t++ {
		all = append(all, extreme(t, false), extreme(t, true))
	}
	all = append(all, bitwise("And"), bitwise("Or"), bitwise("Xor"))
	for _, t := range []element{int32s, int64s} {
		all = append(all, logical("And", t), logical("Or", t), logical("Xor", t))
	}
	return append(all, locate(false), locate(true), blocks())
}
