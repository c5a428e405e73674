// Package attribute replicates attributes in a zone. Every member has a map of keys and
// values that only it writes, and holds a replica of the map of every other member. The
// protocol is section 4 of "Design and Implementation of a Scalable Membership Service
// for Supercomputer Resiliency-Aware Runtime" (Tock, Mandler, Moreira, Jones):
// anti-entropy between the neighbours of a stable overlay, which is silent when nothing
// is written.
//
// Maps belong to lives (attributes.Life): a member that starts anew has a new, empty
// map. A write raises the map's version by one and gives it to the entry; so the
// version of a map is the greatest of its entries'. Deleting a key writes a
// tombstone.
//
// # Stages
//
//	update    a Digest to all neighbours of the maps whose version is newer than
//	          was sent; one in a period at most, the first of a quiet time at once
//	request   a Request to the sender of a digest for the maps of which it has a
//	          newer version than is known here, and than is pending elsewhere
//	reply     the entries above the version asked for, a section for each map.
//	          What does not fit is asked for again
//
// A section that says that there is nothing makes the receiver ask all of its
// neighbours (push), who answer only if they have something. So does the loss of
// the neighbour at which a request is pending.
//
// # States of a replica
//
//	known      what was offered is here; pending is 0
//	pending    a newer version was asked for from target
//
// What happens upon each input in each state is testdata/transitions.txt.
//
// # What holds
//
//   - A replica is always a map that its owner has had, at the replica's version,
//     and versions only rise while the member is in the view.
//   - When nothing is written, joined, left or connected any more, all replicas of
//     members in the view become equal to their owners' maps, and then nothing is
//     sent and Deadline is core.Never.
//   - A map is never longer than attributes.MaxMap, so one section always fits into a
//     message, and what a core sends upon one input is bounded by what it holds.
//
// docs/membership.md says where this goes beyond the paper, and why.
package attribute
