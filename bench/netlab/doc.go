// Package netlab builds a leaf-spine fabric out of network namespaces. Each host and
// switch has a namespace, each link is a veth pair, each direction of which can be
// shaped. What runs in it are real processes on real sockets, whose packets take real
// routes; what a link carried is what the kernel counted. It needs Linux and root.
//
// A link is a subnet of its own (a /31), so that what is sent to the address of
// one of its ends arrives over that link and no other; the topology of a [Lab]
// names these addresses. Hosts reach all other hosts by equal-cost routes. One
// more namespace, the station, is joined to every node by an unshaped pair that
// is no part of the fabric: a manager's place.
//
// [Rails] is a simpler fabric: hosts with several rails, each of which is a bridge and a
// subnet. A host's link to a rail can fail in both directions or in one, with its carrier
// or without the host noticing, change its rate, and recover, at run time.
//
// A Lab is removed by Close. What a process left behind that was killed is
// removed by the next one with the same prefix, of which there is one at a time.
package netlab
