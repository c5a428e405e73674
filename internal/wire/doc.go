// Package wire lays out the packets and frames between members and switches. A packet
// of the data plane (Header, ErrorBody) is one UDP datagram that carries one chunk;
// frames travel on the members' own connections.
//
// A packet is a header of HeaderSize bytes, big-endian, and a payload of
// elements in the order of the hosts' memory, little-endian. Decode checks every
// field against every other that it depends upon, so that whoever holds a Header
// from it may rely on the packet's kind, signature and length. What a packet
// means, and whether its sender may say it, is for the cores to judge.
//
// docs/protocol.md lists every byte and every rule; testdata/golden has packets
// that this package, the document and the P4 parser agree on.
package wire
