// Package turn lets several implementations of a collective take turns on one fabric.
// Each rank of each is a process that joins over a Unix socket, measures in its turn,
// and blocks in a read during others'.
//
// It says "rank R" when it has joined. Then each turn is a line, and a line that
// answers it; when the socket is closed, the process ends:
//
//	run VARIANT BYTES WARMUP ITERATIONS
//	done right|wrong TRANSPORT USER SYSTEM TIME ...
//	failed REASON
//
// TRANSPORT is how the operations ran, or "-". USER and SYSTEM are the processor time
// of this process during the timed operations, and there is a TIME for each of
// these, in nanoseconds. The ranks meet in a barrier before each operation. The
// result of one before the timed ones and of the last is checked. The programs
// in bench/peers/programs speak this, too.
package turn
