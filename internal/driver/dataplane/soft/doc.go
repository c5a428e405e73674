// Package soft is the data plane in software. Every tree has a goroutine that owns a
// socket and the reduction core behind it. In steady state nothing is allocated.
// Receive buffers are sized to the windows of a tree's neighbours; what finds one full
// is lost, counted and repaired. What a tree cannot carry on with, such as a socket
// that fails, ends its epochs.
package soft
