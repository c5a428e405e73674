// Package udp gives reliable, ordered byte streams over UDP: net.Conn and net.Listener.
// internal/core/rudp is the protocol; this is its driver. It authenticates nobody: TLS
// runs over it.
//
// A listener has one socket for all its connections, those that it has dialled too.
//
//	Write, TryWrite   sequential per Conn: the writer steps the core and sends by itself
//	reader            one goroutine a socket: reads batches, steps the core of each
//	                  connection that they are for, sends what comes out, and keeps all timers
//	Read              copies what the core holds, and steps it where that opens the window
//
// So nothing that is sent waits for another goroutine, and what comes wakes one.
// Package transport moves the datagrams, in GSO and GRO batches.
//
// # Locks
//
// Conn.mu guards one core, and is held while its packets are handed to the kernel: they
// refer to its buffer. socket.mu guards tables and timers, may be taken under Conn.mu, and
// is held for moments only.
//
// # Bounds
//
// A connection holds at most its two buffers and, for each packet in flight, a few dozen
// bytes; after a second without traffic it holds no buffers. A listener has at most
// Config.Connections, and keeps nothing of callers that have not proven their address.
package udp
