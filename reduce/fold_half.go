package reduce

import "encoding/binary"

// halfKernel returns the kernel of f on t, a type of 16 bits. It computes in
// binary32 over all vectors and rounds once, at the end.
func halfKernel(f Function, t Type) Kernel {
	return func(dst []byte, in [][]byte) { foldHalf(f, t, dst, in) }
}

func foldHalf(f Function, t Type, dst []byte, in [][]byte) {
	const size = 2
	var accumulators, scratch [block]float32
	check(dst, in, size)
	for at := 0; at < len(dst); at += block * size {
		end := min(at+block*size, len(dst))
		n := (end - at) / size
		acc, x := accumulators[:n], scratch[:n]
		widen(t, acc, in[0][at:end])
		for _, v := range in[1:] {
			widen(t, x, v[at:end])
			combine(f, acc, acc, x)
		}
		narrow(t, dst[at:end], acc)
	}
}

// widen sets v to the values in src, two bytes each.
func widen(t Type, v []float32, src []byte) {
	if t == Float16 {
		for i := range v {
			v[i] = F16(binary.LittleEndian.Uint16(src[2*i:])).Float32()
		}
		return
	}
	for i := range v {
		v[i] = BF16(binary.LittleEndian.Uint16(src[2*i:])).Float32()
	}
}

// narrow writes the values v, rounded, into dst, two bytes each; their NaNs
// become canonical.
func narrow(t Type, dst []byte, v []float32) {
	if t == Float16 {
		for i, x := range v {
			binary.LittleEndian.PutUint16(dst[2*i:], uint16(F16From(x)))
		}
		return
	}
	for i, x := range v {
		binary.LittleEndian.PutUint16(dst[2*i:], uint16(BF16From(x)))
	}
}
