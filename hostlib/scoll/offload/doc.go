// Package offload runs server collectives in the switches of the fabric. The replies of
// such a service are a vector with a reduction function: statuses by or, counts by sum,
// versions by minimum. Elsewhere, when something goes wrong, and for everything else,
// they run over hosts, by hostlib/scoll.
//
// A group has one root, declared when it is made. Requests go down one
// collection tree, as broadcasts of a communicator (hostlib), and replies come up
// another, as reductions. Members post the credits of a number of broadcasts
// ahead, so that a request finds every switch ready. In the switches a member
// sees no children, and the root one, which stands for all others: its reply is
// the vector of all of them.
//
// # Which way
//
// A request goes through the switches if both communicators have a tree then;
// the others, and all of a group whose members have no manager, go over hosts. A
// switch that dies, or a link, is not noticed: hostlib brings what is under way
// to its end, and requests go over hosts until there is a new tree.
//
// A request that has not come back when its time is up, or whose members did not
// all succeed, or that the death of a member has caught in the switches, is
// broadcast again over hosts: to learn who failed, and what the others have. For
// that members remember the vectors of the last requests, so that nobody runs a
// request twice, whatever way it comes. After the death of a member, or a
// request that was not back in time, the communicators have ended: all further
// requests go over hosts, with what hostlib/scoll does about nodes that do not
// answer. To come back to the switches the group is closed, and joined again by
// those that live.
//
// Reductions by exclusive or are not offloaded: one of two failures would undo
// the other in the flag that reports them.
package offload
