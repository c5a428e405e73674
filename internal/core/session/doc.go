// Package session is the host side of a reduction. The core cuts one member's
// operations into chunks, keeps them in flight within the window, repairs losses, and
// carries operations over a change of epoch.
//
// A session speaks to one parent, named by the Link of the present epoch: a
// leaf switch, or the member's own node of a host tree. It does not know which
// of the two it is; the rules of numbers, window and repair are the same.
//
// # Numbers and window
//
// Chunks are numbered through across the operations of a group; every
// operation takes at least one number. With base the oldest number whose
// result is missing, number n is sent only while n < base + W. So a parent
// that gets n + 2W knows that every member has had n.
//
// # States of a chunk
//
//	state    meaning                                   leaves by
//	flying   contributed (or about to be) in this      result -> done
//	         epoch, result missing
//	awaited  another member holds the result; this     Fill -> done
//	         one wants it
//	done     result taken; a copy is kept for the      Enter, result not held
//	         group's largest window                    by a sink -> flying
//
// # Parts
//
// Whether this member is the source of a chunk, and whether a sink, is a matter of the chunk: an
// operation with Parts has members hold and want ranges of its vector. A result is whole, also at
// a sink that wants some of its elements: it keeps a copy then, to give to others.
//
// # Window
//
// Within W, congestion control bounds what is on its way, by the law of Swift
// (Kumar and others, SIGCOMM 2020) on the delay from contribution to result:
// "Congestion control" in docs/protocol.md, and decision 16. Swift's target is
// absolute, and not a multiple of the least delay, as in Vegas, TIMELY or Copa: on
// hosts that share processors the least delay is far below the usual one, and one
// who comes to a link later would never see it.
//
//	mode      after a round, d being its fastest result       becomes
//	by delay  d within limit(w): w+2, or 2w at the start       by loss, if d is over
//	          d above it: w cut by half of the excess, to 16   3 targets in 4 rounds of 16
//	by loss   as CUBIC (RFC 9438), up to W                     by delay, for a test with 16,
//	                                                           every 64 rounds, or at a cut after 16
//
// Below 64 the limit rises to three targets, so that 45 chunks or so are on their way
// beside a TCP stream that its own host keeps from filling the queue: Linux lets
// it have two buffers of 64 KiB there, about 90 packets, and half as many of ours
// are a third of the link. Many groups have a queue of up to three targets for
// that.
//
// The mode by loss is for links that TCP fills, where who looks at the delay
// starves; Copa (Arun and Balakrishnan, NSDI 2018) has such a mode. A round
// without a chunk that had to wait for the window changes nothing, nor do the
// first chunks after a pause, which wait for late members: so small operations
// are left alone, and the next operation begins with the window of the last.
//
// A loss cuts the window only where the delay shows a queue, or more than a
// quarter was lost (Veno; Fu and Liew, 2003).
//
// # Demand
//
// The lowest rank says what window its group's operations can use, in the bounds
// that the group has for its life. It begins with 1.
//
//	when                                                             says
//	results of 4 W came within 2 s while W was in the way            the group's largest
//	after 2 s in which more numbers were in flight at once           that many
//	after 2 s in which a quarter did, and W was not in the way       that many, 1 at the least
//
// A group of small operations, or without any, so says nothing and has no timer
// for it.
//
// # Memory
//
// While an operation is unfinished its vectors are lent, and what is kept of its
// chunks lies there. Copies are made of the last W chunks alone, as they finish,
// and of all whose elements are turned: these have places of their own, one after the
// other in the ring's order. Contributions of chunks that follow each
// other in a vector, or there, are one Send, with that part of it as its Body, where
// the caller takes batches.
//
// Forget gives back the copies of numbers before one of which all members have every
// result. The members agree upon it when they rest (package epoch), and the session
// says it to the switches in its idle probes.
//
// # Block floating point
//
// Operations on reduce.Block32 have vectors of float32. A chunk is turned when
// it is contributed, for the group's number of members, and when its result is
// given to the operation. Kept copies, and what Kept and Fill hand over, are as
// on the wire: mantissas and an exponent. So a chunk that is reduced again is
// contributed with the same bits, and all members decode the same ones.
//
// # Sums in fixed point
//
// An operation with Fixed is two, whose numbers follow each other: all members agree on the marks of
// the vector, by the greatest, and then sum words. A number of the second is sent when the base has passed
// the marks of its elements; with others it is turned as it goes and comes, as in block floating point. So are
// the elements of an operation that is Compressed.
//
// # Repair
//
// docs/protocol.md says when a member probes, and when it takes a tree for lost
// ("When to probe" to "When a tree is lost"). A tree of hosts runs over streams,
// which lose nothing while they last. There a probe comes when a stream is new
// (Reconnected), and otherwise after Timing.Max only: thousands of operations at
// once make each late, and nothing is lost.
//
// What was asked for is not on its way any more and makes room in the window of
// congestion control, which is what may be on its way, while W bounds the
// numbers.
//
// # Change of epoch
//
// Freeze stops the session and returns what it holds. Enter begins the next
// epoch with the group's decision: every number from Decision.Base on that is
// not in Decision.Held is reduced again, also where it was finished, from the
// kept copy.
//
// Held numbers whose credit for W is of an older, larger window are confirmed by
// empty chunks ("Confirmed numbers" in docs/protocol.md).
package session
