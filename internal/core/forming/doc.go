// Package forming is how a member learns that all others are there. The core ends the
// forming of a communicator. Its messages travel over the host connections of the tree
// of hosts, as those of package epoch do.
//
// A member reports to its parent which ranks beneath it are not there, and to its
// children which are not there in all: wire.Missing, up and down. An empty one
// goes up when a whole subtree is there, and down from the lowest rank when
// everybody is. So who waits can always name for whom, and nobody begins before
// the last member has come.
//
// # States
//
//	state    meaning                                    leaves by
//	waiting  somebody is not there, as far as is known  at the lowest rank: every child's empty
//	                                                    Missing; elsewhere: the parent's
//	formed   all are there                              -
//
// Nothing is acknowledged. A new connection has both sides repeat what they know.
// What changes for the better is reported once in Period, so that a large group that
// gathers slowly is not busy with that; what ends the waiting is reported at once.
package forming
