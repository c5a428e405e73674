// Package arp resolves the hardware addresses of neighbours on the ports of a P4
// target, and answers for the ports' own addresses, by ARP (RFC 826). The target
// forwards packets without the kernel, which need not have the addresses.
//
// A table of what is asked and known is a value without clock or socket; [Service]
// drives it, with one packet socket for all interfaces of a network namespace. What a
// neighbour says of itself is believed, as every station on an Ethernet does, but only
// of neighbours that somebody waits for: nobody can make the table grow.
package arp
