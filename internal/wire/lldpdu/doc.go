// Package lldpdu lays out LLDPDUs: what a port announces of itself and its machine by
// LLDP (IEEE 802.1AB). docs/lldp.md lists the fields and Tributary's own TLVs.
//
// Decoding is strict where the standard has a receiver discard the whole LLDPDU: a
// mandatory TLV that is missing, misplaced, repeated or of a wrong length, and a TLV that
// is longer than what is left. An optional TLV that is malformed, unknown or repeated is
// discarded alone. Senders in use are tolerated: padding behind the end, no end at all,
// texts that end with zeros or are not UTF-8, several management addresses, any subtype of
// identifier.
package lldpdu
