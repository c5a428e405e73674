// Package endpoint is one member of a communicator as a pure core. It connects the
// member's session, its part in the agreement on epochs, and its node in the tree of
// hosts. hostlib drives it over sockets and internal/sim in virtual time.
//
// What crosses its border:
//
//	in    operations, packets from the leaf switch, frames from neighbours in
//	      the tree of hosts, news of connections, the manager's offers
//	out   packets to the leaf switch, frames to neighbours, completions, epochs
//	      entered, the manager's notice, the end
//
// A group begins in epoch 1 on its tree of hosts; its first tree of switches,
// too, is an offer.
package endpoint
