// Package agree is how members agree on a value although some of them die: the bitwise AND of 64
// flags that each gives, and the set of the members that have failed. The core is one member. It
// takes part in agreements one after the other, numbered from 1.
//
// # Guarantees
//
// The agreement is uniform: all members that decide, also one that dies right after, decide the
// same. The flags are the AND of what those gave who are not among the failed, and perhaps of what
// some of the failed gave before they died. The failed are dead, and all that a survivor knew of
// when it gave its flags are among them. Any number of members may die, at any moment. Every
// survivor decides if every survivor starts, if messages between survivors arrive, in whatever
// order, and if the death of every member in Output.Watch is reported in the end; who is reported
// dead has to be, or must be cut off, since nobody hears it any more.
//
// # Algorithm
//
// It is that of D. Buntinas, "Scalable distributed consensus to support MPI fault tolerance"
// (IPDPS 2012), with strict semantics. It is simpler than that of Herault et al., "Practical
// scalable consensus for pseudo-synchronous distributed systems" (SC'15), whose early return is
// not uniform: a member that has returned may die together with the root that decided, and the
// others then decide otherwise.
//
// The lowest member that lives leads. It sends waves down a binomial tree over the members that
// it does not know to be dead, and each comes back up as acknowledgements:
//
//	Collect  gathers flags, failed members, and what is locked
//	Lock     has all store the value
//	Commit   has all decide
//
// A wave that meets a dead member comes back as a Nak, which names it, and the leader sends it
// again over another tree. When the leader dies the next member, which watches those below it,
// collects anew, and takes over the value that is locked, if one is. A value is decided once all
// that live have locked it, so that no later leader can miss it.
//
// The first Collect is implied: members acknowledge it when they start, up the tree over those
// that the decision before has not named. So without failures the value goes up, down, up and
// down a tree once, and a process sends at most 2 log2(n) + 3 messages.
//
// # States of an agreement
//
//	state      input                        effect
//	any        Collect, Lock, Commit of a   passed on to the children; a dead child: Nak to the parent.
//	           later leader or wave         Lock: the value is stored. Commit: decided
//	           the same of an earlier one   none
//	           Ack of a child               once all have come, and the member has started (which only
//	                                        Collect waits for): Ack to the parent; at the leader the
//	                                        next wave
//	           Nak of a child               Nak to the parent; at the leader the wave anew
//	           Dead: a child that has not   the same
//	           acknowledged
//	           Gone of a member             as Dead
//	           Dead: now all below are      this member leads: Collect, or Commit where it has decided
//	open       Start                        started: the implied Collect may be acknowledged
//	           Nak, Collect or Dead         Disturbed: somebody has died before all have started
//	started    Commit                       decided: the agreement before is forgotten
//	decided    Collect                      Ack with the decision
//
// A message of an agreement has the decision of the one before with it, so that who missed it
// does not need it from others. Two agreements are remembered: the last that was decided, for
// those that have not heard of it, and the next. A member in which another is held dead answers
// it Expelled. One that has Quit answers all else by Gone, also what came before, and does nothing
// more: its process lives, so that nobody reports it dead. Both are answers to mostDismissals
// messages of a member.
//
// Every SlowAfter, doubling, members report up the tree, and the leader down, for whom it waits.
package agree
