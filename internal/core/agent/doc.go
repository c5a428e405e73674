// Package agent is the core of a switch agent. It keeps what the switch has promised to
// which group, and until when, and says what its driver has to do about it.
//
// A manager reserves in two phases. Prepare promises the slots of one epoch
// and opens the data socket that they are reached at; Commit hands the epoch's
// configuration to the aggregate core behind that socket; Remove takes either
// back. All three may be repeated, late, or in the wrong order:
//
//   - The same request again gets the same answer.
//   - An epoch that was removed, that ran out, or that a later one overtook is
//     never accepted again (ErrStaleEpoch), even if its Remove came before its
//     Prepare.
//   - A request for another incarnation of the agent is refused
//     (ErrIncarnation). A restarted agent is a new, empty core with a new
//     incarnation, so nothing that was meant for its predecessor touches it.
//
// What was prepared but never committed runs out by the lease in Prepare. What
// was committed is kept alive by the group's own packets: the aggregate core
// sees them, and its driver passes on what it says has expired.
//
// What reduces may be out of reach, or be able to do less than before: an Offer
// reports. A switch that is unusable promises nothing new, and says why.
//
// One socket serves one tree of a group; the epochs of that tree share it, and
// share one array of slots, as in package aggregate. A tree therefore counts
// with the largest of its epochs, not with their sum, and a new epoch takes
// the slots of the one before it over.
//
// Like all cores (see package core) it is a deterministic state machine
// without goroutine, socket or clock.
package agent
