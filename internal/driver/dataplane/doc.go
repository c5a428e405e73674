// Package dataplane is the interface between a switch agent and its data plane. The
// agent decides what its switch promises to whom; a Plane reduces the packets of the
// trees.
//
// There are two. Package soft reduces in the agent's own process, with a socket
// for each tree. Package pipeline has it done by a P4 target, which it configures
// by P4Runtime, and does for it what the target cannot.
//
//	agent core --Open, Install, Retire, Shut--> Plane <--packets--> hosts, switches
//	     ^--------------- Event ------------------'
package dataplane
