// Package node decides how the processes of one host reduce in shared memory, so that the
// host contributes once to an operation of several hosts.
//
// An operation is cut into segments, which are numbered through all operations. Each segment
// goes through stages, and several are under way, each in a slot of the memory: a slot has an
// area for each process, and the result is in the first. The lowest process, the leader, runs
// the operation between hosts on the first area, in place.
//
// What processes know of each other are counters in the shared memory: how many segments each
// has copied in, reduced and read, and how many the leader has finished. They only grow, and
// each has one writer. Next is a function of them; its caller does what it returns and
// publishes the counter of that:
//
//	action   by       when                                                   publishes
//	Finish   leader   the operation between hosts is done                    Finished
//	Check    all      all have copied in: whether all have called the same   -
//	Start    leader   checked, and all shares are reduced                    -
//	Reduce   all      checked                                                Reduced
//	Copy     all      called, and all have read what was in the slot before  Copied
//	Get      all      see below                                              Read
//
// A process that gets no result has read as soon as it has reduced. One that gets the vector
// of a process of its own host reads it once checked. Others, and the leader always, read when
// the leader has finished.
//
// Where the vector is joined from parts of all processes, each copies its own into the first area,
// and the operation between hosts brings the parts of other hosts there.
//
// Each process reduces a range of the elements, in the order of the processes. Short segments
// the leader reduces alone. A process that dies stops where it is: its counters never pass
// that, so nobody reads what it has not reduced. Ending such an operation is the caller's.
package node
