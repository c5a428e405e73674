// Package peer holds all connections between this host and others. A process has one
// [Host]: one name and incarnation, one certificate, one listener. Services of the
// process (communicators, server collectives, membership, bulk transfers) register at
// it and send frames to hosts by name; none of them dials, accepts, greets or times
// out on its own.
//
// # Trust
//
// With certificates every connection is under mutual TLS 1.3, and a host is who its
// certificate names. Without, only loopback addresses are served and dialled, unless
// Config.AllowPlaintext says otherwise by name. Package internal/wire/greeting has
// what is said first: both hosts, both incarnations, the protocol's version. Who is not
// authenticated yet costs a bounded amount of memory and time, by source: see package
// internal/core/peering, which decides what is dialled, accepted and closed, and which
// of two connections survives.
//
// # Classes
//
// A connection has a class; what travels in one never waits for what travels in
// another, since each is a TCP connection of its own, made when there is something to
// send (decision 34). Control, Data and Large are shared by the frames of all
// services; in Bulk every call is a connection of its own, whose bytes are its service's
// business.
//
//	class    carries                               frames of at most
//	Control  requests, heartbeats, small replies   64 KiB; before other packets where queues know priorities
//	Data     packets of communicators              64 KiB
//	Large    large replies                         64 MiB and 64 KiB; sent from where they lie
//	Bulk     transfers                             none
//
// # Frames
//
// A frame begins at a multiple of 8 bytes of its connection, big-endian:
//
//	4   length of the payload
//	1   service; 0: the connection itself
//	3   stream: the service's own number
//	n   payload
//	    0 up to the next multiple of 8
//
// The connection itself says, by the first byte of a payload: 1, that it is to be answered;
// 2, the answer; 3, that nothing more comes; 4 and the number of a service, that a frame
// was dropped because the host does not have it; 5 and a service, that it has gone. Of a length only as much is believed as has
// come: memory grows with the bytes that are there.
//
// # Sending
//
//	Channel.Send    under a lock     lays the frame behind the others, or keeps where it lies
//	Channel.Flush   in the caller    writes as far as the kernel takes it without waiting
//	writer       a goroutine      writes the rest, as long as there is some
//
// A queue is bounded: Send fails with ErrFull. A peer that reads nothing for
// Config.DeadAfter loses its connection. Whatever waits for a connection that cannot be
// made, or breaks, fails: services decide what is sent again.
//
// # Receiving
//
// A connection has one goroutine that reads. It has no memory to read into while
// nothing comes. Frames that came together are handed on together, from where they were
// read; a handler that waits is not read for, so that senders wait.
package peer
