// Package embedded runs a whole fabric in one process. It has an offload manager, an
// agent for every switch and a host for every host, each with its own sockets on the
// loopback interface. They speak gRPC, TCP and UDP to each other as they would on
// machines of their own; nothing is mocked, and any of them can be killed as a process
// would be.
//
// The links of the topology are not there: every node reaches every other. What
// a host's link to its switch would carry is what the host's data socket
// counted, see [TrafficOf].
package embedded
