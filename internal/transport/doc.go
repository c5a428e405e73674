// Package transport is the boundary between packets and the network: UDP in
// batches, several packets a system call, and the same in memory for tests. Where
// the kernel can, packets to one destination travel through it as one (see
// docs/decisions/0010-datagrams-travel-in-trains.md).
//
// A Conn belongs to one goroutine, which reads and writes; anybody may wake it
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
package transport
