// Package peer holds all connections between this host and others. A process has one
// [Host]: one name and incarnation, one certificate, one listener. Services of the
// process (communicators, server collectives, membership, messages) register at
// it and send frames to hosts by name; none of them dials, accepts, greets or times
// out on its own.
//
// docs/connections.md has the protocol: who is trusted, what is said first, classes of
// connections, frames, and limits. Package internal/core/peering decides what is dialled,
// accepted and closed, and which of two connections survives.
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
// A connection has one goroutine that reads; on Linux, TCP connections of the classes Message and
// Fragment are read by who waits for a message (Host.Drive), or else by one goroutine for all.
// There is no memory to read into while nothing comes. Frames that came together are handed on together, from where they were
// read; a handler that waits is not read for, so that senders wait.
package peer
