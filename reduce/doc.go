// Package reduce reduces vectors element by element. It knows the element types and the
// reduction functions of Tributary, which pairs of them are defined, and has a kernel
// for each defined pair.
//
// A vector is bytes: its elements lie densely, each in little-endian order, at
// any alignment. That is the order in which they travel, and the memory order of
// most machines, where Bytes views a slice as a vector without a copy; Put and
// Get convert on every machine.
//
// A Kernel reduces k vectors in one pass and in order, so that the bits of a
// floating-point result depend on the order of the inputs alone. Results are
// the same bits on every machine: whatever is not a number comes out as one
// canonical pattern, and no operation is fused with another. What each function
// does with overflow, NaN and signed zeros is reported in docs/functions.md.
//
// Block32 has no kernel, since its vectors have exponents: EncodeBlock makes them
// of vectors of Float32, SumBlocks adds them, and DecodeBlock turns them back.
//
// Kernels use AVX-512 or AVX2 where the processor has them. Elsewhere, and in a
// build with the tag noasm, they are in Go, and give the same bits.
//
// Nothing here keeps state or allocates while reducing; kernels may be called
// from several goroutines at once.
package reduce
