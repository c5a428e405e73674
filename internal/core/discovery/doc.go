// Package discovery makes a map of a fabric from what its switches report by gNMI. It is
// a pure core; the daemon managerd has its driver, docs/discovery.md is the description
// for users.
//
// Facts come from targets, the operator's part from a file. Claims follow from facts: a
// port hears a neighbour. Links follow from claims, and the map from links:
//
//	facts --resolve--> claims: who is meant, at which port --match--> links --publish--> map
//
// A step looks only at ports whose facts changed, and at those that depend on them: by a
// key that a neighbour may be known by (index), or by claims (match).
//
// # A target
//
//	state      input or time                 next       out
//	idle       its turn has come             dialled    dial
//	dialled    Connected                     connected  -
//	dialled    Failed                        away       the next address of that switch is dialled
//	connected  Reported                      connected  changes of the map
//	connected  Lost                          away       its ports' neighbours count as heard last
//	connected  it is a switch known already  idle       drop; a seed has its turn again when that is away
//	away       a neighbour hears it anew     away       retry
//	away       Connected                     connected  -
//	away       Confirm is over               away       alarm; another of its name takes it over
//	away       Forget is over                away       its node goes; dropped if nobody announces it
//	any        nobody announces it any more  -          drop, if it has never reported
//
// # A claim
//
//	state  input                            next
//	live   heard                            live
//	live   not heard, port down, or target  kept
//	       lost
//	live   somebody else is heard           gone
//	kept   heard                            live
//	kept   somebody else is heard           gone
//	kept   Forget is over                   gone
//
// # A link
//
// There is one between two ports that claim each other, and between one that claims and
// one that cannot, because it is no target or reports no LLDP. Where a port could have
// several, live claims come before kept ones, those of both ends before those of one,
// then who was heard first (of kept ones, last).
//
//	in the map  facts                                        next     out
//	absent      there is one                                 up/down  link added, after Batch
//	up          an end is down                               down     link down, at once
//	down        no end is down, not held                     up       link up, after Batch
//	down        no end is down, held for too many changes    down     -
//	any         there is none, or another at one of its ends absent   link removed or moved, after Batch
//
// A kept claim lets a link stay: a cable does not go because a neighbour is silent.
package discovery
