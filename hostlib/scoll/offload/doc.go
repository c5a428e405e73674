// Package offload runs server collectives in the switches of the fabric. The replies of
// such a service are a vector with a reduction function: statuses by or, counts by sum,
// versions by minimum. Without switches, after failures, and for everything else,
// requests run over hosts, by hostlib/scoll.
//
// A group has one root, declared at its creation. Requests go down one collection tree,
// as broadcasts of a communicator (hostlib), and replies come up another, as
// reductions. Members post the credits of several broadcasts ahead, so that every
// switch is ready for a request. A member sees no children, and the root one, which
// represents all others: its reply is the vector of all of them.
//
// # Transport of a request
//
// A request uses the switches if both communicators have a tree at that time; otherwise,
// and in groups without a manager, it uses hosts. The death of a switch or link is
// transparent: hostlib completes operations in progress, and requests use hosts until
// there is a new tree.
//
// A request is broadcast again over hosts if it has not returned in time, if not all
// members succeeded, or if the death of a member interrupted it; that shows who failed,
// and the others' replies. Members remember the vectors of the last requests, so that no
// member runs a request twice. After the death of a member, or a request that did not
// return in time, the communicators have ended: all further requests use hosts. To use
// the switches again, close the group and join it again with the living members.
//
// Reductions by exclusive or are not offloaded: one of two failures would cancel the
// other in the flag that reports them.
package offload
