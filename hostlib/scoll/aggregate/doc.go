// Package aggregate combines replies of server collectives into one. An aggregation is
// what a service does at every node of a tree with its own reply and those of its
// children. There are three:
//
//   - Statuses counts the nodes that succeeded and names those that failed, as
//     many as there is room for;
//   - Parts concatenates replies, each framed with the name of its node;
//   - Vector reduces vectors element by element with a function of package
//     reduce.
//
// All are Aggregators: replies are added in any order, one by one as they arrive or
// all at once at the end, with the same result: for Statuses and Vector bit for bit,
// for Parts except for the order of the parts. Aggregation is associative, so the shape
// of the tree does not matter either, except for the rounding of floating-point sums.
//
// The package knows nothing of requests and connections; hostlib/scoll has the
// callbacks that use it, and a service's own callbacks can call it. An Aggregator is
// not safe for concurrent use: incoming replies of one request may race, and need a
// lock. All integers are big-endian, vectors are as in package reduce.
package aggregate
