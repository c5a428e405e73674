// Package portmap derives the ports and routes of a P4 target from what is known of
// them: settings, the interfaces of the machine that the target runs on, what a manager
// has assigned, and the hardware addresses of next hops.
//
//	              settings   interface   manager's map   neighbour
//	port number       1          2 (a target's own, or what its name ends in)
//	      address     1          2             3
//	      MAC         1          2
//	route             1                        2
//	      MAC         1                                       2
//
// The first source that says something wins. What nobody says is left out: a port
// without an address, a route without a port or without the next hop's hardware
// address.
package portmap
