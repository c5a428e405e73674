package reduce

import "unsafe"

// block is the number of elements that a pass over many vectors takes at a
// time: their accumulators, 2 KiB at most, stay in the first-level cache.
const block = 256

// number is the constraint of the types that kernels compute in.
type number interface {
	int32 | int64 | uint32 | uint64 | float32 | float64
}

// integer is the constraint of the integers among them.
type integer interface {
	int32 | int64 | uint32 | uint64
}

func integerKernel[T integer](f Function) Kernel {
	switch f {
	case Sum, Product, Min, Max:
		return func(dst []byte, in [][]byte) { fold[T](f, 0, dst, in) }
	default:
		return func(dst []byte, in [][]byte) { foldBits[T](f, dst, in) }
	}
}

// floatKernel returns the kernel of f on T whose canonical NaN is nan.
func floatKernel[T float32 | float64](f Function, nan T) Kernel {
	return func(dst []byte, in [][]byte) { fold(f, nan, dst, in) }
}

// fold reduces in to dst with the arithmetic function f. All NaNs of the result
// are nan; for integers, it is any number.
func fold[T number](f Function, nan T, dst []byte, in [][]byte) {
	size := int(unsafe.Sizeof(nan))
	check(dst, in, size)
	if len(in) == 1 || !accumulates[T](dst, in) {
		foldCopies(f, nan, dst, in)
		return
	}
	for at := 0; at < len(dst); at += block * size {
		end := min(at+block*size, len(dst))
		acc := view[T](dst[at:end])
		combine(f, acc, view[T](in[0][at:end]), view[T](in[1][at:end]))
		rest := in[2:]
		for f == Sum && len(rest) >= 3 {
			addThree(acc, view[T](rest[0][at:end]), view[T](rest[1][at:end]), view[T](rest[2][at:end]))
			rest = rest[3:]
		}
		for _, v := range rest {
			combine(f, acc, acc, view[T](v[at:end]))
		}
		settle(acc, nan)
	}
}

// foldCopies is fold by way of copies in this machine's order and alignment. It
// reads what it needs of a block before it writes to dst.
func foldCopies[T number](f Function, nan T, dst []byte, in [][]byte) {
	var accumulators, scratch [block]T
	size := int(unsafe.Sizeof(nan))
	for at := 0; at < len(dst); at += block * size {
		end := min(at+block*size, len(dst))
		n := (end - at) / size
		acc, x := accumulators[:n], scratch[:n]
		reorder(memory(acc), in[0][at:end], size)
		for _, v := range in[1:] {
			reorder(memory(x), v[at:end], size)
			combine(f, acc, acc, x)
		}
		settle(acc, nan)
		reorder(dst[at:end], memory(acc), size)
	}
}

// accumulates reports whether dst and in can be viewed as elements of type T,
// and dst can hold interim results, being none of the later vectors in.
func accumulates[T number](dst []byte, in [][]byte) bool {
	if !aligned[T](dst) {
		return false
	}
	for i, v := range in {
		if !aligned[T](v) || i > 1 && unsafe.SliceData(v) == unsafe.SliceData(dst) {
			return false
		}
	}
	return true
}

// combine sets each dst[i] to a[i] op b[i]; dst may be a or b. All three have
// the same length. NaNs come out as the machine makes them; see settle.
func combine[T number](f Function, dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	switch f {
	case Sum:
		add(dst, a, b)
	case Product:
		for i := range dst {
			dst[i] = a[i] * b[i]
		}
	case Min:
		for i := range dst {
			dst[i] = min(a[i], b[i])
		}
	default: // Max
		for i := range dst {
			dst[i] = max(a[i], b[i])
		}
	}
}

// add sets each dst[i] to a[i] + b[i].
func add[T number](dst, a, b []T) {
	for len(dst) >= 8 && len(a) >= 8 && len(b) >= 8 {
		d, x, y := (*[8]T)(dst), (*[8]T)(a), (*[8]T)(b)
		d[0], d[1], d[2], d[3] = x[0]+y[0], x[1]+y[1], x[2]+y[2], x[3]+y[3]
		d[4], d[5], d[6], d[7] = x[4]+y[4], x[5]+y[5], x[6]+y[6], x[7]+y[7]
		dst, a, b = dst[8:], a[8:], b[8:]
	}
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

// addThree sets each acc[i] to ((acc[i] + a[i]) + b[i]) + c[i], which for three
// vectors loads and stores the accumulators once.
func addThree[T number](acc, a, b, c []T) {
	for len(acc) >= 4 && len(a) >= 4 && len(b) >= 4 && len(c) >= 4 {
		d, x, y, z := (*[4]T)(acc), (*[4]T)(a), (*[4]T)(b), (*[4]T)(c)
		d[0], d[1] = d[0]+x[0]+y[0]+z[0], d[1]+x[1]+y[1]+z[1]
		d[2], d[3] = d[2]+x[2]+y[2]+z[2], d[3]+x[3]+y[3]+z[3]
		acc, a, b, c = acc[4:], a[4:], b[4:], c[4:]
	}
	a, b, c = a[:len(acc)], b[:len(acc)], c[:len(acc)]
	for i := range acc {
		acc[i] = acc[i] + a[i] + b[i] + c[i]
	}
}

// settle makes every NaN of v the canonical one. Which pattern an operation
// leaves differs between machines and orders of operands.
func settle[T number](v []T, nan T) {
	if nan == nan {
		return // integers
	}
	for len(v) >= 8 {
		// The sum of several numbers is NaN wherever one of them is.
		x := (*[8]T)(v)
		if s := (x[0] + x[1] + (x[2] + x[3])) + (x[4] + x[5] + (x[6] + x[7])); s != s {
			settleEach(x[:], nan)
		}
		v = v[8:]
	}
	settleEach(v, nan)
}

func settleEach[T number](v []T, nan T) {
	for i, x := range v {
		if x != x {
			v[i] = nan
		}
	}
}
