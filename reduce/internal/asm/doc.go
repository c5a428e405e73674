// Package asm has the kernels of package reduce in amd64 assembly, for AVX2 and
// AVX-512. They are generated: _gen, a module of its own, has the generator, and reduce
// the pure-Go twin of every kernel.
//
// A kernel reduces the vectors whose slices lie at in, k of them: each element
// from the byte from up to the byte to becomes ((in[0] op in[1]) op in[2]) ... of
// those at its place, and they are written to dst, one after the other. Nothing
// is checked: k is 1 at least, and from and to are multiples of an element's size
// and within all vectors. The vectors may begin anywhere, and dst may be that
// part of one of them.
//
// Kernels of AVX-512 take any from below to. Those of AVX2 want a step between
// the two, at least: 32 bytes, 16 if elements have 16 bits, 64 of locations.
//
// With far, the vectors are fetched ahead of their use: worth it for what is in no
// cache, and a hindrance to what is.
//
// # Fixed sums
//
// A block of a vector are 128 bytes, whose marks are two uint32: its exponent, and not 0 if it has NaNs or infinities.
// Kernels named Mark, Encode and Decode end before a block that has these, and return what is done. Mark also ends
// before a block of binary64 without a number of 2^-1042 or more.
//
// Encode and Decode take units of 128 bytes of integers, which are those of a vector from the unit at on: a block of
// it, or half of one where integers are wider than numbers. An element is multiplied by a power of
// two, whose exponent, as binary64 stores it, is origin less that of the marks, or to decode the sum of both; where
// that of the marks is 0, by 0; of binary64 by the constant, too. It is rounded once, to nearest, ties to even.
//
// # Scheduling
//
// A kernel is a single stretch to the scheduler, which cannot interrupt it, so
// that long vectors are better reduced piece by piece.
//
// Results are the bits that the twins give, NaNs included. Kernels of integers
// that are named after a signed type serve the unsigned one, too, unless there
// is another of that.
package asm

//go:generate go -C _gen run .
