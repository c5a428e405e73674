// Package rollcall is how members whose operation is late find out why. The core floods over the
// tree of hosts what a member waits for; who has called another operation in its place says so, and
// the communicator ends; who has not called yet is named to all.
//
// Operations have a position among all that a member has called on the communicator, in their
// order, and a tag that says what each is (package schedule). Members that agree give each
// position the same tag.
//
// # States
//
// The core remembers the last Positions of which it has heard, each with a round, up to two tags
// with the rank that has given each, and up to MaxLate ranks that have not called.
//
//	input                           effect
//	a tag, or a round, that is new  it is compared with this member's call, and with the other
//	                                tag; passed on to all other neighbours; and answered by Late
//	                                where this member has not called
//	Waiting that is not new         none
//	a rank that is Late, and new    it is noted, and passed on to all other neighbours
//	a later round                   the late ranks are forgotten
//
// So a round costs each edge of the tree at most two Waiting a direction and tag, and MaxLate
// Late. Nothing is acknowledged: who still waits begins another round.
package rollcall
