// Package conformance tests the collectives of a communicator against a sequential oracle: every
// collective, with every function on every type of elements that it is defined on, from the first
// root, the last and one between, in place and not, with no elements, one, an odd number and many.
//
// All members of a communicator call Run, in one process or in many; each checks what it gets:
//
//	result, err := conformance.Run(ctx, comm, conformance.Config{})
//
// Inputs follow from the case and the rank alone, so a member knows what all others give. They
// are chosen so that a reduction has the same bits in any order; of sums of random floating-point
// numbers, whose bits depend on the order, all members have to get the same.
package conformance
