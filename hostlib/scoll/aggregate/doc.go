// Package aggregate combines replies of server collectives into one. An aggregation is
// what a service does at every node of a tree with its own reply and those of its
// children. There are three:
//
//   - Statuses counts the nodes that succeeded and names those that failed, as
//     many as there is room for;
//   - Parts puts replies one behind the other, each framed with the name of the
//     node that gave it, so that the root can distinguish them;
//   - Vector reduces vectors element by element with a function of package
//     reduce.
//
// All are Aggregators: replies are added in whatever order they come, one by one
// as they arrive or all at once at the end, and what comes out is the same: of
// Statuses and Vector bit for bit, of Parts but for the order of the parts.
// Aggregating is associative, so that the shape of the tree does not matter
// either, but for the rounding of floating-point sums.
//
// The package knows nothing of requests and connections; hostlib/scoll has the
// callbacks that use it, and a service with callbacks of its own can call it from
// them. An Aggregator is not safe for concurrent use: incoming replies of one
// request may race, and need a lock. All integers are big-endian, vectors are as
// in package reduce.
package aggregate
