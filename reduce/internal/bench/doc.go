// Package bench measures the kernels of package reduce beside what else could
// do their work: gonum, passes over two vectors at a time, copies.
//
// Both sides take turns in every round, so that what else the machine does is
// against both. Each benchmark tells the median of the rounds: its own bytes per
// second, those of the other side, and the ratio of the two.
//
//	cd reduce/internal/bench && go test -bench . -benchtime 101x
package bench
