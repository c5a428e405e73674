// Package hosttree reduces over a tree of hosts, where no tree of switches exists.
//
// A member's node in the tree of hosts obeys the rules of a switch: it is an
// aggregate (internal/core/switchreduce) whose first child is the member itself,
// whose other children and whose parent are other members, and whose packets
// travel over host connections. Numbers, window, order of reduction and repair
// are therefore those of a tree of switches; a packet that a broken connection
// has swallowed is repaired by the same probes.
//
// Members have ranks and not addresses here. Addr makes an address of a rank
// for the aggregate; it never leaves the process.
package hosttree
