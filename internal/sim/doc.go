// Package sim is a seeded discrete-event world in virtual time. Nodes are known
// by an interface alone; the world carries what they send to each other, loses,
// doubles, delays and reorders it, and crashes, cuts off and restarts nodes.
//
// Everything random comes from one generator with one seed, and events of equal
// time happen in the order in which they were made. The same seed therefore
// gives the same run, event by event, which World.Hash proves; and a run that
// went wrong can be seen again from its seed alone.
//
// # Transports
//
//	datagrams    []byte from port to port; lost, doubled and reordered as the
//	             Link between both nodes says
//	connections  []byte, in order and reliable while the connection stands. A
//	             break loses a random suffix of what is in flight, each way;
//	             both ends learn when it is there again. The crash of an end
//	             is reported to the other after a delay
//	control      any Go value, in order and reliable, with or without a
//	             connection; a crash loses a random suffix of what the crashed
//	             node had sent, and all that was sent to it
//
// A cut loses datagrams and holds up the other two; they go on when it is
// repaired, unless the world's patience with the connection ends before.
//
// # Events
//
// An event is an arrival, a step of a node that was due, or a scheduled call.
// World.AtEvent runs a function between two events, and Sweep does so between
// any two events of a scenario in turn. What is due but means nothing any more,
// such as the timer of a crashed node, is no event.
package sim
