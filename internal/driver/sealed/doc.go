// Package sealed authenticates and encrypts the packets of trees between each child and its parent,
// over any transport.Conn. The cores on both sides see plain packets.
//
//	header | payload | tag, 16 bytes | counter, 8 bytes
//
// The tag is AES-128-GCM's. Of an Authenticated packet it covers header and payload; of an Encrypted
// one the payload is the ciphertext, and the header is covered. Each direction of an edge has a key
// of its own, derived by HKDF-SHA-256 from the key that the manager gives to both ends and to nobody
// else; it is of one epoch, so it changes when the tree does. The nonce is the counter, which its
// sender never repeats: a switch that starts again has no epoch, and a member no group.
//
// # Replays
//
// A packet may come late, or twice: the protocol's numbers see to that. A counter that is more than
// Window behind the greatest of its direction is refused, so that no packet can be kept until the
// numbers of chunks, 32 bits, have wrapped.
//
// # Refused packets
//
// A packet is refused if its epoch and sender are not installed, if its tag is wrong, or if it is a
// replay. It is counted for the child or parent whose address and index it uses, and dropped;
// nothing is answered. What is to be sent without a key is dropped and counted, too. Before anything is
// installed, all that comes is refused, since it is not known yet how packets are protected.
package sealed
