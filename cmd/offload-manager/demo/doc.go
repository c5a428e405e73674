// Package demo runs the demo: a whole fabric in one process. It shows an allreduce that
// is reduced in the switches, a second one whose root switch fails in its middle, and
// for comparison a third over hosts. Every result is held against reductions that were
// computed by other means:
//
//   - against a plain loop over all inputs, in wide arithmetic: exactly for
//     integers and for functions that select, within a bound of the rounding
//     error for floating-point sums and products;
//   - against the same kernels folded over the same tree in the same order, bit
//     by bit, chunk by chunk, where the tree is known;
//   - and against the results of all other members, bit by bit.
//
// [Run] does it, and a [Report] reports it, as text or as JSON.
package demo
