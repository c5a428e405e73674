// Package lldp sends and hears LLDP on the ports of this machine, and measures the delay
// of their links. It is the driver of internal/core/neighbor: raw sockets, in the network
// namespace of the process, and the interfaces as they come and go. docs/lldp.md describes
// it for users.
//
// # Goroutines
//
//	each port   waits for LLDPDUs at a socket of its own: a flood on one port costs the
//	            others nothing but time
//	two         watch the interfaces, and open and close sockets
//	one         steps the core, and sends
//
// Sockets are bound to an EtherType, so that packets of others pass none of this package's
// code, in the kernel neither. That takes the capability CAP_NET_RAW.
package lldp
