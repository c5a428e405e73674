// Package revoke is how all members of a communicator find out that one of them has revoked it,
// although more of them die meanwhile. The core is one member. Nothing is sent, no time passes and
// no memory is taken before somebody revokes: it has no deadline.
//
// # Guarantees
//
// The notice is a reliable broadcast without uniformity and order: a member delivers at most once,
// and only what some member has revoked. If a member delivers and lives on, all that live on
// deliver, as long as fewer members than Degree die. Where several revoke at once, members may
// deliver the notices of different ones. With more deaths those deliver whom a path of living
// members joins to one that does; who is cut off may be notified by a Revoke of its own.
//
// Nobody takes part but by its driver: no caller needs to do anything.
//
// # Overlay
//
// Notices go along the binomial graph: links from v to v + 2^k and v - 2^k mod n, for every
// 2^k < n. (Not n/2: that is a smaller graph for many n.) All vertices have Degree neighbours, as
// many as must be removed to cut the graph, and are at most Diameter links apart. A binomial
// broadcast tree from any root is contained in it. The neighbours are computed, and not stored.
//
// A member begins with the links of at most a quarter the length of that by which the notice has come:
// those through which it is to go on. With the longest first it would be everywhere after twice the time.
//
// The graph is that of T. Angskun, G. Bosilca, J. Dongarra, "Binomial graph: a scalable and
// fault-tolerant logical network topology" (ISPA 2007), and its use for this that of A. Bouteiller,
// G. Bosilca, J. Dongarra, "Plan B: interruption of ongoing MPI operations to support failure
// recovery" (EuroMPI 2015).
//
// # States
//
//	state    input                            effect
//	forming  notice of a neighbour            kept: the last ones of two communicators, with who has sent them
//	         Formed                           idle; with a kept notice of this communicator as on its receipt
//	         Revoke                           none: no caller has the communicator
//	idle     Revoke: by this member, or as    the notice to each neighbour that is not dead, then Delivered;
//	         it knows otherwise, by another   revoked
//	         notice of a neighbour            the same, also to the one that has sent it; its By is kept
//	revoked  Revoke                           none
//	         notice of a neighbour            it needs no repetition
//	         Connected, of a neighbour that   the notice once more, to that one
//	         is not dead and has sent none
//	any      Dead                             the neighbour is sent nothing more, and not waited for
//	         Connected, otherwise             none
//	         a message that is no notice, or  none; Refused
//	         of no neighbour, or of another
//	         communicator
//
// So a link carries one notice in each direction, and that of the other end is the acknowledgement.
// Once every neighbour has sent its own or is dead, the member is Settled.
//
// # Connections
//
// The driver sends a notice on the connection with the neighbour, makes one where there is none, and
// drops what it cannot send: Connected has it repeated. That a connection has broken is no input. A notice
// that was lost with it, or was still on its way, is repeated on the next one; a duplicate does
// nothing. Until the member is Settled, the driver keeps up connections with those that IsAwaited
// says. One whose notice was lost, while that of this member was not, may wait for it until its own
// driver forgets the communicator; but it knows.
//
// A member is formed later than others, and may get notices before that; or of an earlier
// communicator of the same members and name, which a late neighbour is still in. Of these there is
// one: all had left the one before it when it was formed. So two are kept.
package revoke
