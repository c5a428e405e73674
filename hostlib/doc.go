// Package hostlib runs collective operations between hosts, in switches or over a tree
// of hosts. Switches reduce where an offload manager has given the group a collection
// tree; otherwise the hosts do. The result is the same either way, and every operation
// reports its transport and the reason.
//
// A process joins once, and then makes communicators: groups of hosts in an
// agreed order.
//
//	host, err := hostlib.Join(ctx, hostlib.Config{Name: "h3", Manager: "10.0.0.1:7400"})
//	comm, err := host.Communicator(ctx, "job-17", members)
//	outcome, err := hostlib.Allreduce(ctx, comm, reduce.Sum, gradients, gradients)
//
// Forming a communicator is collective: Communicator waits until all members have
// called it with the same name and the same list; the log names missing members. If
// ctx ends first, the error, an ErrFormation, names the missing members, and members
// that have met the one that gave up get it, too. Each process forms communicators of the same members in
// the same order, or in goroutines of their own.
//
// # Operations
//
// Allreduce, Reduce, Broadcast, Barrier, Gather, Allgather, Scatter, Alltoall, ReduceScatter, Scan
// and Exscan are collective: every member calls them, in the same order, with vectors of equal
// length, or in the forms with a v, of any. The Start forms do not block and return a Request;
// several may be in flight. Buffers belong to the operation until it is done. Members that
// disagree about an operation all get an error, a *Disagreement, that names two of them. Send and
// Recv move messages between two members. docs/collectives.md has the calls of MPI and NCCL
// beside these.
//
// The first four run in switches, over the tree of hosts, or by an algorithm of hosts, whichever the
// cost model says is the fastest; so do those of the others in which switches spare messages or
// bytes, and the rest by the fastest algorithm of hosts. OnTree, OnTreeOfHosts and OnHosts decide
// otherwise, and Communicator.Explain says why.
//
// Options of Communicator declare its operations: OnlyFunctions, OnlyTypes and
// BlockFloat decide which switches can serve it; Expect, ChooseBy and ChooseByWeights
// decide which of the possible trees the manager takes. Stripes cuts long vectors over
// several trees, and Roots divides the members among several roots.
//
// # Failures
//
// The loss of a switch, a link or the manager is not an error: the operation
// continues over another tree, or over hosts, and all members get the same bits.
// The death of a member is one: operations of all others fail with a *MemberError that names it, and
// the communicator ends, but for messages between members that live. It also ends for every member when one calls Abort, or closes its
// host. When the context of a blocking operation ends, its caller alone stops waiting, with
// an *UnfinishedError. The same members
// may then form it again, under the same name; or those that live go on without the dead:
//
//	comm, err = comm.Shrink(ctx)
//
// All survivors call it, and get a communicator of the same members with a tree of its own, though
// more may die meanwhile. A member that is not to wait any more, or has the others not do so, calls
// Communicator.Revoke: all operations fail at all members with ErrRevoked, nobody counts as dead, and
// Shrink makes a communicator of all again. Communicator.Agree has the members that live come to one
// decision, whoever dies meanwhile: whether all have done what some have, for instance. Communicator.Grow
// takes spares in the place of the dead: hosts that call Host.AwaitInvitation. docs/collectives.md has the
// rules, and package hostlib/elastic the loop around these calls.
//
// # Goroutines and connections
//
// A communicator has one goroutine, which owns its data socket and its protocol core
// (internal/core/endpoint). Its links to its neighbours in the tree of hosts, at most
// the logarithm of the group, are streams on connections that all services of the host
// share: one to each other host for small messages, and one for vectors. Each further
// tree of Stripes or Roots is a sub-communicator; Roots has one goroutine more, and the
// lowest ranks of the parts are all neighbours of the first. A Host is one process;
// several processes of one host have a label each, Config.Process. In a communicator with
// several of them each has three goroutines more, or two and one for each other process of the
// host at that with the lowest rank: they reduce, gather and scatter in shared memory, and a
// sub-communicator of the lowest rank of each host runs operations between hosts.
package hostlib
