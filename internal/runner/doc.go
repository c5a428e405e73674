// Package runner is the one clock and loop of all drivers: it steps a protocol
// core from one goroutine, in real time.
//
// A Loop steps its core when inputs are there or the core's deadline has come,
// hands what comes out to Config.Apply, and waits again. Inputs come from two
// sides: from other goroutines by Post, in a queue of bounded length; and from
// the place where the loop waits, its Source. Without one that is a timer.
// [Packets] is a socket: then one goroutine owns socket and core together, and
// a packet passes from one to the other without a queue between them.
//
// Who waits for what a step brings about may do the loop's work meanwhile, by
// Help: then no goroutine has to be woken, neither to begin nor at the end. There
// is always one that steps, the loop's own or a helper.
//
// Whoever starts a Loop owns it, and waits for its end by Close.
package runner
