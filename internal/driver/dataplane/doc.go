// Package dataplane is the border between a switch agent, which decides what
// its switch promises to whom, and what reduces the packets of the trees: a
// Plane.
//
// There are two. Package soft reduces in the agent's own process, with a socket
// for each tree. Package pipeline has it done by a P4 target, which it configures
// by P4Runtime, and does for it what the target cannot.
//
//	agent core --Open, Install, Retire, Shut--> Plane <--packets--> hosts, switches
//	     ^--------------- Event ------------------'
package dataplane
