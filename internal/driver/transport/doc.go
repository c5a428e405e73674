// Package transport sends and receives UDP packets in batches, several in a system call.
//
// A Conn belongs to one goroutine, which reads; anybody may write, wake it
// or read its counters. That is all that a goroutine needs which owns a socket
// and a protocol core together:
//
//	n, err := conn.ReadBatch(packets, until) // packets, or the core's deadline, or Wake
//	...                                      // step the core
//	conn.WriteBatch(messages)
//
// A datagram network loses packets; so does a Conn, and never says so by an
// error: what the network refuses is dropped and counted. [WithFaults] loses,
// doubles and reorders on purpose, over any Conn, from a seed.
//
// # What makes a UDP fast
//
// Packets to one destination travel through the kernel as one GSO batch, on both
// sides; they are read where the kernel wrote them; nothing is allocated for
// them; a GSO batch may be given to its reader whole, as one Packet; and whoever has
// just had one looks for the next before it sleeps, for as long as that has been
// worth it, and sleeps so that the kernel wakes the very thread that reads.
// docs/decisions/0010, 0015 and 0018 report why and what it brings. Each of these is a [Features] that can
// be left out, by Config.Without; a UDP leaves out by itself what the kernel
// refuses when it tries, whatever its version. On systems other than Linux, and
// without Batching, there is one packet a system call, by package net.
//
//	ReadBatch   take what is there, unless the owner has just asked for it (SetAsked)
//	            else, for Config.Poll at most since the last packet: sched_yield, and look again
//	            else, for 20 ms since then: ppoll, in the reader's thread
//	            else: the Go runtime's poller; an idle UDP holds no thread
//
// Config.Netpoll has the last of these alone, with fewer system calls.
//
// Only a few reads of a process poll or sleep in a system call at a time, four for
// each processor; all others wait in the Go runtime's poller, which a thousand
// sockets share. The memory that the kernel receives into and sends from is
// shared, too: a socket that sleeps in the poller has none.
package transport
