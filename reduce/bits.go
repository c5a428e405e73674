package reduce

import "unsafe"

// foldBits reduces in to dst with f, a bitwise or logical function. Values are
// loaded in their memory order by way of copies, as in foldCopies, and the
// logical functions turn them to truth values as they come.
func foldBits[T integer](f Function, dst []byte, in [][]byte) {
	var accumulators, scratch [block]T
	size := int(unsafe.Sizeof(accumulators[0]))
	check(dst, in, size)
	logical := f == LAnd || f == LOr || f == LXor
	for at := 0; at < len(dst); at += block * size {
		end := min(at+block*size, len(dst))
		n := (end - at) / size
		acc, x := accumulators[:n], scratch[:n]
		reorder(memory(acc), in[0][at:end], size)
		if logical {
			judge(acc)
		}
		for _, v := range in[1:] {
			reorder(memory(x), v[at:end], size)
			if logical {
				judge(x)
			}
			combineBits(f, acc, x)
		}
		reorder(dst[at:end], memory(acc), size)
	}
}

// judge makes each value of v 1 where it is not 0.
func judge[T integer](v []T) {
	for i, x := range v {
		var truth T
		if x != 0 {
			truth = 1
		}
		v[i] = truth
	}
}

// combineBits sets each acc[i] to acc[i] op x[i]; of logical functions, both
// are 0 or 1.
func combineBits[T integer](f Function, acc, x []T) {
	x = x[:len(acc)]
	switch f {
	case BAnd, LAnd:
		for i := range acc {
			acc[i] &= x[i]
		}
	case BOr, LOr:
		for i := range acc {
			acc[i] |= x[i]
		}
	default: // BXor, LXor
		for i := range acc {
			acc[i] ^= x[i]
		}
	}
}
