// Package reduce reduces vectors element by element. It knows the element types and the
// reduction functions of Tributary, which pairs of them are defined, and has a kernel
// for each defined pair.
//
// A vector is bytes: its elements without gaps, little-endian, at any alignment. That is
// their order on the wire and in the memory of most machines, where Bytes views a slice
// as a vector without a copy; Put and Get convert on every machine.
//
// A Kernel reduces k vectors in one pass and in order, so that the bits of a
// floating-point result depend only on the order of the inputs. Results have the same
// bits on every machine: every NaN is canonical, and no operation is fused with another.
// docs/functions.md defines overflow, NaN and signed zeros for each function.
//
// Block32 has no kernel, since its vectors have exponents: EncodeBlock converts from
// vectors of Float32, SumBlocks adds them, and DecodeBlock converts back.
//
// Kernels use AVX-512 or AVX2 where the processor has them. Elsewhere, and in a
// build with the tag noasm, they are in Go, and give the same bits.
//
// Nothing here keeps state or allocates while reducing; kernels may be called
// from several goroutines at once.
package reduce
