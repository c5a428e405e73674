// Package member is the core of a zone's membership. It is pure. The protocol is that
// of Tock, Mandler, Moreira and Jones, Design and Implementation of a Scalable
// Membership Service for Supercomputer Resiliency-Aware Runtime (Euro-Par 2013);
// docs/membership.md says where this goes beyond it, and why.
//
// # What a core knows
//
//	view         who is there, at which version; ordered by place on the ring
//	history      who was removed lately, at which version: it reports stale news
//	suspicions   of members of the view, fewer than are enough to remove them
//	update       what is news to the neighbours, sent Tau after its first event
//	links        the neighbours: Ks successors, Kr random ones, and who chose the core
//	suspected    who may have failed and is being probed
//	relays       whom the core probes for others
//	inquiries    connections that were dialled for a probe
//
// Versions and the order dead above alive at the same version make news
// commutative: whatever order it comes in, equal news give equal views.
//
// # Proofs
//
// With an Identity a core believes what is proven, and nothing else:
//
//	a life (an ID, an incarnation)   its birth: a record that the host's certificate has signed
//	its minor, from 2 on             the life's signature; one that is not proven counts as 1
//	its leave                        the life's signature
//	a suspicion, a Nack              the signature of the reporter, the witness
//	what the core itself is said to be: a later life by its birth; nothing else
//
// A birth is checked once. It is in a Hello, a Welcome, and a reply to discovery that has
// room. Of lives that came in a view or an update a core asks who spoke of them:
//
//	claim      event                                                    becomes
//	none       news of a life that is not proven, on a standing link    asked: Wants
//	asked      the same news from another                               asked; that one is next
//	asked      Births of who was asked: proven                          the news is taken
//	asked      not proven; the link ends; askedFor is over, a next one  asked: Wants to that one
//	asked      the same, and there is none                              none
//	none       news, and the neighbour has its share of claims          none
//
// A birth that is signed again, by another certificate, takes the place of the earlier one
// and goes on to the neighbours. Births that do not count any more, after a Recheck:
//
//	birth      event                                                    becomes
//	known      signed later than the known one, renewalPause is over    known, sent to all others
//	known      Recheck: it does not count                               unproven: Wants to all neighbours
//	unproven   one that counts, whenever it was signed                  known, sent to all others
//	unproven   Recheck: it counts                                       known
//	unproven   askedFor is over                                         none: the node leaves the view
//
// A leave waits with the news. Versions in questions, disputes and refusals are not proven:
// one beyond what the node has proven is taken for what it has.
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
// Who asks for discovery is answered by one packet, less than three times as large as the
// question, since anybody may have named its address; it then connects for the view. A
// newcomer first asks another of its name, if the answer says of one.
//
// # Links
//
//	dialing    Connected -> greeting
//	greeting   Hello sent; Welcome -> standing, Refuse -> closed
//	awaiting   accepted; Hello -> standing, or Refuse and closed; Probe is answered
//	standing   Base, then Updates; Wants and Births; Goodbye -> closed, Failed -> the other end is probed
//
// A link is kept while one end needs it, as successor or as random neighbour.
// Where two dial each other, the dial of the lower key stands.
//
// # Failures
//
// A node chooses its watchers: its next Ks predecessors and Kr random neighbours.
// It sends a heartbeat to one after the other, so that each hears from it once a
// Heartbeat. All neighbours see a connection fail; the watchers see silence, too.
// What is seen makes a suspect: the node is probed for Confirm if its connection or a
// dial failed, for Grace if it was only silent; by datagrams and over a connection,
// by the core and by others. An answer of any kind ends the probing. Otherwise it
// takes evidence, so that a node that hears or says only a part removes nobody:
//
//	suspect    event                                                     becomes
//	probing    an answer, over whatever transport; a link stands         settled
//	probing    Confirm is over, the address refuses, a witness           suspected
//	probing    Confirm is over, the address does not refuse              probing, for Grace
//	probing    Grace is over, a witness                                  suspected
//	probing    the time is over, no witness                              open: all is asked again
//	open       a witness                                                 suspected, at once
//	any        a neighbour holds it for dead, no newer version in time   suspected, and removed
//	any        nobody is left to be asked; or open for lonely * Grace    removed by the core alone; neighbours find out
//
// A witness is another that has asked the node, too, and says that it does not
// answer (Nack), or suspects it. So one lost packet, or ten, harm nobody, and a
// process that was killed is known to be dead after Confirm. Who was asked about
// another and said nothing is probed itself. A core whose accusations were refuted
// lately takes more witnesses (health.witnesses). The monitors hear of it by the
// watchers, and by a deputy if nobody before it on the node's list answers:
// Ks + Kr messages at most.
//
// A relay is done for members. A relay or a probe that comes over a link is answered there; one that comes as
// a datagram is answered by one. An inquiry is a connection that is dialled only
// for a probe: the other end answers it in the place of a Hello.
//
// A core that is stepped late, or gets no answer from others either, probes
// itself, and gives others more time (health).
package member
