// Package neighbor is LLDP (IEEE 802.1AB) on all ports of one machine: what they send,
// what they hear, and the measured delay of their links. It is a pure core;
// internal/driver/lldp is its driver, docs/lldp.md the description for users.
//
// # A port
//
//	state   input                   next    out
//	absent  set, down               down    -
//	absent  set, up                 up      announcement
//	down    set, up                 up      announcement
//	up      set, the same           up      -
//	up      set, other contents     up      announcement
//	up      set, other identifiers  up      shutdown with the former ones, announcement
//	up      set, down               down    -
//	up      interval over           up      announcement
//	up      a neighbour is new      up      announcement
//	up      removed                 absent  shutdown
//	down    removed                 absent  -
//	up      close                   closed  shutdown
//
// A port that leaves the state up, or gets other identifiers, forgets its neighbours.
// Announcements out of turn take credit, of which an interval gives back one: a flood of
// new neighbours does not make a flood of announcements. After a new neighbour a few
// intervals are at most a second (the standard's fast transmission).
//
// # A neighbour of a port
//
//	state    LLDPDU                        next
//	unknown  there is room                 known
//	unknown  no room, somebody is stale    known, in the place of the stale one
//	unknown  no room                       unknown, counted
//	known    the same identifiers          known
//	known    TTL of 0                      unknown
//	known    none for the TTL              unknown
//
// Stale is who is silent for long (StaleAfter), whatever its TTL: neighbours that repeat
// themselves are never displaced, and what was forged keeps nobody out for longer. A port's
// own announcement that comes back is a neighbour with the mark Loop.
//
// # The delay of a link
//
// A port asks the first of its neighbours that is Tributary's: often at first, and then
// with its announcements in turn. Only the response to the one request that is under way counts, from
// the address and the port that it was sent to. Half of its round trip, without the time
// that the responder held the request, is a sample; the delay is the least of the last
// ones. A responder answers known neighbours of Tributary alone, and so many of them.
package neighbor
