// Package epoch is the members' agreement on the next epoch. By this core the members,
// and not the manager, decide in which epoch they continue and which of their numbers
// in flight are reduced again.
//
// Its messages travel over host connections along a tree of hosts by rank
// (ranktree), rooted at the lowest rank, so that a member speaks to at
// most the logarithm of the group. Reports are merged on their way up.
//
// # States
//
//	state       meaning                               leaves by
//	running     the session works in the epoch        Collect, or at the lowest rank: an
//	                                                  alarm, or an offer that all hold
//	collecting  frozen; reports of children awaited,  Decide
//	            or the decision
//	left        the last barrier is done              -
//	ended       the communicator has failed           -
//
// # A round
//
// An alarm goes up to the lowest rank, which begins a round: Collect goes
// down; every member freezes its session, waits for its children's reports,
// merges its own, and reports to its parent. With all reports the lowest rank
// decides: on the greatest offer that all members hold, else on the next odd
// number, a tree of hosts. Decide goes down; every member enters the epoch. A
// result that one member holds and another lacks travels as a Fill: up from a
// holder to the first common ancestor that lacks it and on to the lowest rank,
// and down to all who lack it.
//
// # Settled numbers
//
// A member that rests says up to which number it has all results; its parent
// merges that with its own and the other children's, and says the least of them.
// What the lowest rank so knows of all goes down to all, and is forgotten there
// (Member.Forget): no round goes back beyond it. What all have said within one epoch
// is at most the base of every later one; what some have said is taken back to the
// base of the next decision.
//
// Nothing is acknowledged. When a host connection is re-established, each side
// repeats its last message and what it was to send on; rounds are numbered, so
// that what comes twice is known. The death of a member ends the communicator.
package epoch
