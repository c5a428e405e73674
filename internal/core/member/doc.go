// Package member is the core of a zone's membership: what one node does so that
// all nodes of a zone know who is there. It is pure. The protocol is that of
// Tock, Mandler, Moreira and Jones, Design and Implementation of a Scalable
// Membership Service for Supercomputer Resiliency-Aware Runtime (Euro-Par 2013);
// docs/membership.md tells where this goes beyond it.
//
// # What a core knows
//
//	view         who is there, at which version; ordered by place on the ring
//	history      who was removed lately, at which version: it tells stale news
//	suspicions   of members of the view, fewer than are enough to remove them
//	update       what is news to the neighbours, sent Tau after its first event
//	links        the neighbours: Ks successors, Kr random ones, and who chose the core
//	doubts       who may have failed and is being probed
//
// Versions and the order dead above alive at the same version make news
// commutative: whatever order it comes in, equal news give equal views.
//
// # Nodes
//
//	state     news                                      becomes
//	unknown   alive                                     alive, Join
//	alive     alive, newer minor                        alive
//	alive     alive, newer incarnation                  alive, Leave and Join
//	alive     leave, not older                          gone, Leave
//	alive     suspicions of enough, not older           gone, Leave
//	gone      alive, newer                              alive, Join
//	gone      leave, newer                              gone
//	unknown, alive, gone: anything else changes nothing (testdata/transitions.txt)
//
// # Links
//
//	dialing    Connected -> greeting
//	greeting   Hello sent; Welcome -> standing, Refuse -> closed
//	awaiting   accepted; Hello -> standing, or Refuse and closed
//	standing   Base, then Updates; Goodbye -> closed, Failed -> the other end is doubted
//
// A link is kept while one end needs it, as successor or as random neighbour.
// Where two dial each other, the dial of the lower key stands.
//
// # Failures
//
// A node chooses its watchers: its next Ks predecessors and Kr random neighbours.
// It sends a heartbeat to one after the other, so that each hears from it once a
// Heartbeat. All neighbours see a connection fail; the watchers see silence, too.
// What is seen is a doubt: the node is probed, directly and by others, for Confirm
// if its connection or a dial failed, for Grace if it was only silent. Only who
// does not answer is suspected. So one lost packet, or ten, harm nobody, and a
// process that was killed is known to be dead after Confirm. The monitors are told
// by the watchers, and by a deputy if nobody before it on the node's list answers:
// Ks + Kr messages at most.
//
// A core that is stepped late, or gets no answer from others either, doubts
// itself, and gives others more time (health).
//
// # Beyond the paper
//
//   - A new neighbour that holds somebody alive whom the core holds dead is told
//     (Dispute), and asks that node. So one link joins two halves of a partition
//     without a false Leave: all nodes of both raise their minor and are alive.
//   - Four heartbeats carry the 64 bits of a digest of the view and of the
//     suspicions, a quarter each. Neighbours where these stay different exchange
//     them. Updates can get lost with the links they travel on.
//   - A disputed node that does not answer is removed whatever Theta: the neighbour
//     has had reporters enough, and the core has found out itself. Otherwise views
//     could stay different, as what convicted a node at one may never come to the
//     other: reporters leave, and small views take fewer.
//   - No datagram brings anybody into the view unless it answers a number that the
//     core drew lately: who asks for discovery is probed first. So copies of old
//     ones do not bring back who was forgotten.
//   - The nodes of a view ask their history together as often as one would alone.
//   - A successor over a link that stands already is probed when it becomes one.
package member
