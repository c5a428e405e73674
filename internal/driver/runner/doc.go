// Package runner steps a protocol core from one goroutine, in real time. It is the one
// clock and loop of all drivers.
//
// A Loop steps its core when inputs are there or the core's deadline has come,
// hands what comes out to Config.Apply, and waits again. Inputs come from two
// sides: from other goroutines by Post, in a queue of bounded length; and from
// the place where the loop waits, its Source. Without one that is a timer.
// [Packets] is a socket: then one goroutine owns socket and core together, and
// a packet passes from one to the other without a queue between them.
//
// A source may be closed for a while (Closable), when nothing can come from it. Then
// the loop's own goroutine sleeps without holding the step lock, and whoever
// brings an input (Deliver) or waits for its effect (Drive) steps the core itself:
//
//	source  who may step                      a poster         a waiter
//	open    who reads it: own goroutine       wakes the reader becomes the reader
//	closed  anybody, one at a time            steps (Deliver)  sleeps on its event
//
// Who waits for what a step brings about may do the loop's work meanwhile, by
// Drive: then no goroutine has to be woken, neither to begin nor at the end. There
// is always one that steps, the loop's own or a caller's.
//
// Whoever starts a Loop owns it, and waits for its end by Close.
package runner
