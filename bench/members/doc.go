// Package members measures membership services. It reports how long it takes until all
// nodes know of a death, what a quiet zone costs, and how fast many nodes that start at
// once see each other. [Rig] runs nodes of one [System] in this process, over sockets
// of the loopback interface, in real time.
//
// # What is counted
//
// Every datagram counts with its payload and 28 bytes (IPv4, UDP), every write
// to a connection with its payload and 52 bytes (IPv4, TCP and its timestamps)
// for each 1448 bytes or part of them. Handshakes of TCP and empty
// acknowledgements are not counted; they would cost most who connects most.
// Bytes a node are those that it sends: what is sent is received once, too.
package members
