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
// "Agreement on epochs" in docs/protocol.md has the steps of a round, and what
// settled numbers are. Nothing is acknowledged. When a host connection is
// re-established, each side repeats its last message and what it was to send on;
// rounds are numbered, so that what comes twice is known. The death of a member
// ends the communicator.
//
// # End
//
// A failure goes up, and the first one at the lowest rank goes down to all and ends the
// communicator. By a revoke (wire.FailRevoked), whether the member was notified of it or gets it
// from a neighbour, it ends at once, and sends nothing: package revoke notifies all, without the
// lowest rank, which may be dead. A member that has left is gone when all neighbours are known to await
// nothing more of it: they have said goodbye, have reported a failure, or are dead.
package epoch
