// Package p4 is the P4 program of Tributary, and what a control plane has to
// write into it. The program does in a pipeline what internal/core/switchreduce
// does in Go, by the same packets (docs/protocol.md); that core is its oracle.
//
//	     Reader    headers; values as wide blocks
//	       |
//	     Verify    checksums of IPv4 and UDP
//	       |
//	. . .  |  . . . . . . . . ingress: one thread, which keeps state . . . . . . .
//	       |
//	     Forward --- not for this switch ------------------------------------.
//	       | to one of its trees                                             |
//	     Soundness -- a fault -----------------------------------.           |
//	       |                                                     |           |
//	     Admission -- group, tree, epoch, cookie, sender --------|           |
//	       |                                                     |           |
//	     Slot -- Contribution, Probe, Answer, Reported --- dropped --|           |
//	       |       '-- not reduced here --> CPU port: the agent   |           |
//	     Blocks    the values: reduced, stored, loaded           |           |
//	       |                                                     |           |
//	     Tally <-------------------------------------------------'           |
//	       |  one copy a neighbour, by multicast groups                      |
//	. . .  |  . . . . . . . . egress: threads, without state  . . . . . . .  |
//	       |                                                                 |
//	     rewrite   to a child or to the parent                               |
//	       |                                                                 |
//	     ports <-------------------------------------------------------------'
//	       |
//	     Sum, Writer
//
// The source is tributary.p4 and stages/, one control a file. compile.sh
// compiles it; what p4c makes of it is committed, and TestCurrent fails where it
// is not of these sources. The constants of this package are generated from the
// P4Info and from the limits and outcomes in stages/ by go generate, which takes
// no p4c.
//
// # State and entries
//
// A [State] is all that a switch is configured with: its ports and routes, the
// trees that it takes part in, their epochs. [Translate] turns it into table
// entries and multicast groups, without a target: writing
// is for internal/driver/p4rt.
//
// Registers can be neither read nor cleared from outside, and a slot, or a tree's
// place, is used again by other groups. So each epoch has a serial number, above
// all that the pipeline ever saw: to the pipeline it is what the epoch's number
// is to the core, and it orders also the epochs of different groups. An agent
// that starts over without a new push must go on above its predecessor's; the
// time in milliseconds does.
//
// The agent frees an epoch of which none of the counters TrafficChild and
// TrafficParent has moved for the length of its lease, and keeps the parent's
// lease alive by TrafficUp: the pipeline itself passes on idle probes of the
// lowest child, and sends none of its own.
//
// # Values
//
// A packet's payload is parsed as wide blocks: five of 256 bytes and a tail of
// 128, 64, 32, 16, 8, 4, 2. Each block computes all of its lanes at once by
// masked arithmetic. What is exact in every order is reduced as it comes: the
// sums of integers, min and max of all types, the bitwise and logical functions;
// broadcasts and barriers reduce nothing. The result has the bits of package
// reduce.
//
// Sums of block32 are not exact in every order: by how much a mantissa is shifted
// is known when the greatest exponent is. So contributions are kept, one place a
// child, and the last one folds them all in its one pass through ingress: no
// other packet ever sees a slot half folded, and all that comes before it, probes
// and duplicates as well, finds a slot that is open like any other. That takes
// memory for each child, so it is done in the first BlockSlots slots, and for
// trees of up to BlockChildren children; others are handed over.
//
// # Hand-over
//
// A contribution to anything else (products, sums of floating-point numbers,
// minloc, maxloc), if it has elements, and one of block32 beyond the limits above
// take their slot over for the agent: it and all that comes for the slot's number later, once it has passed
// admission, goes to the CPU port with a [PacketIn] before it. The agent runs an
// aggregate.Core for the tree and sends what that sends as packets out with
// [RoutedPacketOut]. Together they do what the core alone would, with these
// exceptions: the agent's core must have no leases, since it does not see all of
// an epoch's packets; what the pipeline counts as handed counts once more in the
// agent's core, with the outcome; and a packet of the agent takes a moment, in
// which a neighbour's later packet may be answered first.
//
// # Where it differs from the core
//
//   - At most Children children, Chunk bytes, MaxProbes probes, and no two
//     neighbours of an epoch at one address: Translate refuses others.
//   - No keep-alive of its own, see above.
//   - A packet that is damaged or cut off is a Discard; the core never sees one.
//   - A checksum of UDP that comes out as 0 is sent as 0, which says that there
//     is none, not as 0xffff: one packet in 65,536 goes without.
//   - A few packets change their order: see the loop below.
//
// # The loop
//
// bmv2 gives a packet room for 512 bytes more than it came with, and the process
// ends if that is not enough. An answer with a value is longer than its probe by
// a whole chunk. A packet that will have to grow by more goes round first, with
// padding, by the ports LoopOutPort and LoopInPort, which must be connected to
// each other: by a veth pair whose two ends are given to bmv2. What goes round
// are probes answered with a result of more than LoopBytes, the parent's want
// for such a partial, and the last contribution to such a broadcast if it is not
// the vector. It changes nothing on its way, and has its outcome at the end; it
// counts as Looped besides. Without the loop those packets are lost.
package p4
