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
//
// The rest of a frame of class Fragment is read to where its service has it lie, if that is a [Placer],
// and it is asked before each read:
//
//	what has come                    reader                       then
//	head, and the begin of a body    Place, which copies that     placing; no place: as other frames
//	more of the body                 Place, which reads it        placing; no place: dropping
//	the end of the body              Received, with Frame.Rest    acknowledged, as any frame
//	the end of what is dropped       Received, the begin alone    likewise
//	the end of the path              nothing                      not acknowledged
//
// The reader keeps no such memory from one read to the next, nor while nothing comes.
package peer
