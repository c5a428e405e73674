// Package p4 is the P4 program of Tributary, and its entries for a control plane. The
// program does in a pipeline what internal/core/switchreduce does in Go, with the same
// packets (docs/protocol.md); that core is its oracle.
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
//	     Admission -- group, tree, epoch, sender, cookie --------|           |
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
// The source is tributary.p4 and stages/, with one control in each file. compile.sh
// compiles it; the compiled program is committed, and TestCurrent fails if it does not
// match these sources. go generate derives the constants of this package from the
// P4Info and from the limits and outcomes in stages/, without p4c.
//
// # State and entries
//
// A [State] is the configuration of a switch: its ports and routes, its trees, their
// epochs. [Translate] turns it into table entries and multicast groups, independent of
// the target; internal/driver/p4rt writes them.
//
// Registers can be neither read nor cleared from outside, and other groups reuse slots
// and places of trees. So each epoch has a serial number, above all that the pipeline
// ever had: the pipeline uses it like the core uses the epoch's number, and it also
// orders the epochs of different groups. An agent that starts without installing the
// program again must continue above its predecessor's numbers, as the time in
// milliseconds does.
//
// The agent frees an epoch if none of its counters TrafficChild and TrafficParent has
// changed for a lease, and renews the parent's lease by TrafficUp: the pipeline forwards
// idle probes of the lowest child, and sends none of its own.
//
// # Values
//
// A packet's payload is parsed as wide blocks: five of 256 bytes and a tail of
// 128, 64, 32, 16, 8, 4, 2. Each block computes all of its lanes at once by masked
// arithmetic. Functions that are exact in every order are reduced on arrival: sums of
// integers, min and max of all types, the bitwise and logical functions; broadcasts and
// barriers reduce nothing. The result has the bits of package reduce.
//
// Sums of block32 are not exact in every order: the shift of a mantissa depends on the
// greatest exponent. So contributions are kept, one place for each child, and the last
// one folds them all in its one pass through ingress: no other packet sees a partly
// folded slot, and earlier packets, including probes and duplicates, find a slot that is
// open like any other. That takes memory for each child, so it is limited to the first
// BlockSlots slots and to trees of up to BlockChildren children; others are handed over.
//
// # Hand-over
//
// Contributions with elements to anything else (products, sums of floating-point
// numbers, minloc, maxloc), and those of block32 beyond these limits, take their slot
// over for the agent: they, and all later packets for the slot's number that pass
// admission, go to the CPU port behind a [PacketIn]. The agent runs the reduction core
// for the tree and sends its packets with [RoutedPacketOut]. Together they behave like
// the core alone, except that the agent's core must have no leases, since it does not
// see all of an epoch's packets; that the agent's core counts handed-over packets again,
// with their outcome; and that a neighbour's later packet may be answered before one of
// the agent.
//
// # Differences from the core
//
//   - At most Children children, Chunk bytes, MaxProbes probes, and no two
//     neighbours of an epoch at one address: Translate refuses others.
//   - No keep-alive of its own, see above.
//   - A damaged or truncated packet, or one without a UDP checksum, is a Discard; the
//     core never sees one.
//   - A neighbour is also known by the port by which its packets come in: the one by
//     which packets to it leave. One that comes in by another port is a stranger's.
//   - A few packets change their order: see the loop below.
//
// # The loop
//
// bmv2 gives a packet room for 512 bytes more than it had on arrival, and crashes if
// that is not enough. An answer with a value is longer than its probe by a whole chunk.
// A packet that must grow by more first goes round, with padding, through the ports
// LoopOutPort and LoopInPort, which must be connected to each other: by a veth pair
// whose two ends are ports of bmv2. These are probes answered with a result of more than
// LoopBytes, the parent's want for such a partial, and the last contribution to such a
// broadcast if it is not the vector. The loop changes nothing; the packet gets its
// outcome at the end, and counts as Looped in addition. Without the loop these packets
// are lost; frames of type CheckType that come in by LoopInPort go to the agent, which
// so finds out whether there is one.
package p4
