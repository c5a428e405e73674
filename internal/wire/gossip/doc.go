// Package gossip lays out the messages of the membership service, and seals datagrams.
// Messages are greetings of two neighbours, views and changes in them, heartbeats,
// probes, discovery, proofs, and containers for attributes and the hierarchy.
//
// # Packets
//
// A packet is a datagram, or lies in a frame between two hosts:
//
//	0  version (4 bits, 3), number of the key (4 bits; 0: not sealed)
//	1  encrypted (1 bit), type (7 bits)
//	2  body
//	   seal
//
// A packet in a frame is MaxFrame bytes at most, a datagram MaxDatagram.
// Messages that would be larger are sent in pieces, each of which means something
// alone (Packet.Pieces).
//
// Numbers are big-endian where their size is fixed; others are unsigned varints
// of the shortest form. A valid body has exactly one form: Decode refuses what
// Append would not write. That the key of an entry is that of its ID is for the
// receiver to check where it does not know the ID (Entry.Valid). What a message
// means, and whether its sender may say it, is for internal/core/member to judge.
//
// # Proofs
//
// A proof is a byte with its length, 0 or 64, and an Ed25519 signature by the key of a life.
// What is signed internal/core/member says. The record of a birth (Origin) is in packets
// behind its length in two bytes:
//
//	length of the ID (1), ID
//	incarnation (8), public key (32)
//	length of the signature (2), signature of Origin.Statement by the first certificate's key
//	number of certificates (1), each with its length (2), in DER
//
// A DiscoveryRequest is filled up with zeros to 600 bytes, so that what it draws is at most
// three times as large.
//
// # Sealing
//
// Nodes share keys. Each has a number from 1 to 15; one seals, all open, so that
// keys can be changed one after another. Frames are not sealed: their connections are
// authenticated.
//
//	                     heartbeat   datagram
//	authenticated        8 bytes     16 bytes
//	encrypted as well    8 bytes     28 bytes
//
// Authentication is HMAC-SHA-256, truncated; encryption AES-256-GCM. A heartbeat
// is never encrypted. Datagrams can be repeated by who has read them.
// Heartbeats are counted; answers, Echo and DiscoveryReply, are taken only by who
// has asked lately; requests for discovery bring in nobody who does not answer in
// turn, and copies of the last 64 are not answered; an Update as a datagram brings
// in nobody at all; other news has versions, and an old one changes nothing. So
// nothing that is repeated brings back who was forgotten. Nonces of encrypted
// datagrams are random: a key is to be changed before 2^32 of them.
package gossip
