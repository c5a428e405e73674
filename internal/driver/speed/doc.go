// Package speed measures how fast this machine reduces: with the core and kernels that
// serve a tree, and, where the caller drives its sockets, with those.
//
// A measurement takes rounds: some chunks of several children, first with the smallest
// payload and then with a usual one. Each round is timed by itself, and the lower
// quartile counts: a round is short beside a time slice, so that other processes
// disturb some rounds and not others, and single ones may be lucky. How much longer
// rounds take on average says how much was disturbed.
package speed
