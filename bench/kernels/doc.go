// Package kernels measures the kernels of package reduce. They are compared with gonum,
// passes over two vectors at a time, and copies.
//
// Both sides take turns in every round, so that what else the machine does is
// against both. Each benchmark reports the median of the rounds: its own bytes per
// second, those of the other side, and the ratio of the two.
//
//	go test -C bench -bench . -benchtime 101x ./kernels
package kernels
