//go:build race

package soft_test

// racing: the race detector's own memory is in what a process uses.
const racing = true
