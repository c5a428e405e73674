// Package quota limits what hosts may take of a manager: groups, slots of switches, and
// plans.
//
// A [Book] has an account of each host, of each label that the operator gives to hosts,
// and of all. What a host takes counts in its own account, in that of its label if it has
// one, and in that of all; it is refused where one of these has no room. An operator, who
// is no host, has the account of all alone.
//
//	resource   what counts                                  limit      ends
//	Groups     groups that stand                            Groups     Add of fewer
//	Slots      slots that groups have on switches           Slots      Add of fewer
//	Waiting    requests for a plan that wait for a turn     Waiting    Add of fewer
//	Plans      plans that are asked for                     Plans      by itself: so many a second
//
// Plans are a rate: the generic cell rate algorithm (ITU-T I.371, annex A), which lets a
// host that asked for nothing have [Burst] seconds' worth at once.
//
//	state of an account   Check                    Add, Spend                 as time passes
//	none                  against the limits       begins                     -
//	begun                 against the limits       counts                     plans: goes back to nothing
//	nothing counts        -                        -                          forgotten at the next sweep
//
// Check changes nothing. Add counts also beyond a limit: what a manager finds after its
// restart, or under limits that were lowered, stays, and nothing new is admitted.
//
// Like all cores (see package core) it is a deterministic state machine without goroutine,
// lock or clock.
package quota
