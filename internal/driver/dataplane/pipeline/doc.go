// Package pipeline is the data plane of a switch with a P4 target. The target reduces
// packets with the program of package p4. The package configures the target by P4Runtime, and
// does for it what the target cannot.
//
//	agent core --Open, Install--> driver --entries, groups--> target <--packets--> hosts, switches
//	     ^------- Event ---------'  |  ^--counters---------------'  |
//	                          aggregate cores <--packets in, out----'
//
// The [Plane]'s driver is one goroutine: it has a ledger of what belongs to
// which tree (indices, slots, serial numbers), derives from it what the target
// is to hold, and writes the difference to what it holds. Every call has a
// deadline. While the target cannot be worked with the plane offers nothing, and
// says why; recovery is a goroutine beside the driver, so that even then
// everything is answered at once.
//
// # Leases
//
// The target counts the packets that it admits of each epoch, and those that it
// sends to the parent. The driver reads that several times in a lease: an epoch
// of which nothing moves has run out, and where only children speak a keep-alive
// goes to the parent (docs/protocol.md, Leases).
//
// # Hand-over
//
// A chunk whose function and type the program does not reduce is handed over,
// with all packets about it, from admission on. Every tree has an aggregate core
// for that, whose packets the target only forwards.
//
// # Prerequisites
//
// The program needs a CPU port, and two ports that are connected to each other
// (package p4, The loop). The driver sends a frame by both ways every second. While
// they do not come back the plane offers nothing and says what is missing; epochs that
// are there stay. A target whose loop carries nothing while an interface of its own is
// set down is deaf (dataplane.Offer): bmv2 then receives at no port.
//
// # What ends an epoch
//
// An epoch is never written twice. When the target has lost its registers, when
// another controller was primary, and when entries are gone that nobody else
// should touch, all epochs end, and their groups go on over other switches or
// their hosts. A broken connection alone ends nothing. At its start an agent
// sweeps what its predecessor left.
package pipeline
