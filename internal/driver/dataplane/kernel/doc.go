// Package kernel reduces packets of trees in the kernel of a Linux switch, before they
// come to the sockets of package soft: a BPF program at the ingress of every Ethernet
// interface (bpf/reduce.c), attached by tcx. It is a switchreduce.FastPath of each epoch;
// all that it does not take goes on to the tree's socket, where the aggregate core has
// the same rules. Whether it reduces shows in the time that it takes, and in counters.
//
// # What it takes
//
// Contributions and results of allreduces and reductions of int32, int64, uint32 and
// uint64 by sum, product, min, max, and the bitwise and logical functions, of sums of
// block32, of broadcasts, and of barriers; over IPv4, in packets without IP options,
// fragments or VLAN tag whose UDP checksum is still to be computed, as it is between veths
// and after receive offload has put a batch together; of epochs with plain packets, chunks up to 1,472 bytes and up to
// 16 children. A batch must complete all its chunks or none: of what completes a part,
// the core gets all. So it does of batches whose results are of two sizes, for children
// that want them and for others, and of those of a broadcast that are completed by another
// than its source: packets of a batch cannot become longer or shorter, single ones can.
// Trees that it cannot serve are reduced by the core alone.
//
// # Memory
//
// Each neighbour has, for each slot, an area: the last packet that came from it for the
// slot. Each area has a word with the packet's number and the area's state. Each slot has
// a word: number, the children whose areas hold it, whether one of them has the vector of
// a broadcast, and whether the agent owns it. Words lie apart from areas, as a batch looks
// at many, and change by atomic operations alone, so several processors may work on one
// slot.
//
//	area    vacant, held, of an older number -> loading -> held        a packet of its neighbour
//	slot    vacant or of an older number     -> number, one child      a contribution
//	        number                           -> one child more         a contribution; if it has the vector of a
//	                                                                   broadcast, too, the first that has
//	        any, not newer                   -> number, agent          Take
//
// A program loads a packet into its area, and then adds the child to the slot. Who adds
// the last one reduces the others' areas into its own packet, and sends that on: to the
// parent as the partial, or, at the root, to every child as the result. A packet for an
// area that is loading, or a slot that the agent owns, goes to the agent. The agent takes
// a slot over first (Take), and reads areas afterwards. So a packet is either in an area
// that the agent reads, or comes to the agent itself, or both. A result is loaded, too;
// its program then looks at the slot once more, and if the agent has it, lets the result
// pass. The rule of the window has the rest: who sends number n + 2W has the result of
// n, so that nobody needs an area of n any more when n + 2W is loaded into it.
//
// # Lifetime
//
// Nothing is pinned: programs, maps and attachments are the agent's file descriptors, and
// go with its process, however that ends. Its successor has nothing to sweep.
package kernel

//go:generate ./bpf/build.sh
