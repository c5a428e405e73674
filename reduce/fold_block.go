package reduce

import "fmt"

// SumBlocks adds the vectors in, of Block32 with the given exponents, to dst and
// returns its exponent, the greatest of them. What Kernel says of lengths,
// alignment and dst holds here, too; there is one exponent for each vector in.
// Where the vectors are those of EncodeBlock, or sums of such, for a group of so
// many members, no sum wraps.
func SumBlocks(dst []byte, in [][]byte, exponents []int8) (exponent int8) {
	check(dst, in, 4)
	if len(exponents) != len(in) {
		panic(fmt.Sprintf("reduce: %d exponents of %d blocks", len(exponents), len(in)))
	}
	exponent = exponents[0]
	isOne := true // there is only one exponent
	for _, e := range exponents {
		isOne = isOne && e == exponent
		exponent = max(exponent, e)
	}
	switch {
	case fastest.sumBlocks(dst, in, exponents, exponent):
	case isOne:
		fold[int32](Sum, 0, dst, in)
	case accumulates[int32](dst, in):
		foldBlocks(dst, in, exponents, exponent)
	default:
		foldBlockCopies(dst, in, exponents, exponent)
	}
	return exponent
}

// shiftOf returns by how much mantissas are shifted right from an exponent to a
// greater one. By 31 nothing is left of them but the sign, and so by more.
func shiftOf(from, to int8) uint { return min(uint(int(to)-int(from)), 31) }

// foldBlocks sets dst to the sum of two vectors or more, where accumulates is
// true.
func foldBlocks(dst []byte, in [][]byte, exponents []int8, exponent int8) {
	for at := 0; at < len(dst); at += block * 4 {
		end := min(at+block*4, len(dst))
		acc := view[int32](dst[at:end])
		addShifted(acc, view[int32](in[0][at:end]), view[int32](in[1][at:end]), shiftOf(exponents[0], exponent), shiftOf(exponents[1], exponent))
		for i, v := range in[2:] {
			addShifted(acc, acc, view[int32](v[at:end]), 0, shiftOf(exponents[i+2], exponent))
		}
	}
}

// foldBlockCopies is foldBlocks by way of copies in this machine's order and
// alignment. It reads what it needs of a block before it writes to dst.
func foldBlockCopies(dst []byte, in [][]byte, exponents []int8, exponent int8) {
	var accumulators, scratch [block]int32
	for at := 0; at < len(dst); at += block * 4 {
		end := min(at+block*4, len(dst))
		acc, x := accumulators[:(end-at)/4], scratch[:(end-at)/4]
		clear(acc)
		for i, v := range in {
			reorder(memory(x), v[at:end], 4)
			addShifted(acc, acc, x, 0, shiftOf(exponents[i], exponent))
		}
		reorder(dst[at:end], memory(acc), 4)
	}
}

// addShifted sets each dst[i] to a[i]>>s + b[i]>>t; dst may be a or b. Neither s
// nor t is above 31.
func addShifted(dst, a, b []int32, s, t uint) {
	if t == 0 {
		a, b, s, t = b, a, t, s
	}
	s, t = s&31, t&31 // which spares the loops the question
	if s > 0 {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = a[i]>>s + b[i]>>t
		}
		return
	}
	for len(dst) >= 8 && len(a) >= 8 && len(b) >= 8 {
		d, x, y := (*[8]int32)(dst), (*[8]int32)(a), (*[8]int32)(b)
		d[0], d[1], d[2], d[3] = x[0]+y[0]>>t, x[1]+y[1]>>t, x[2]+y[2]>>t, x[3]+y[3]>>t
		d[4], d[5], d[6], d[7] = x[4]+y[4]>>t, x[5]+y[5]>>t, x[6]+y[6]>>t, x[7]+y[7]>>t
		dst, a, b = dst[8:], a[8:], b[8:]
	}
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]>>t
	}
}
