// Package schedule has the collective algorithms of hosts as schedules: what one member sends,
// receives, reduces and copies for one operation, in rounds. Schedules are pure, and so is a
// [Run] of one. hostlib carries them out over package hostlib/rail, internal/sim/world in virtual time,
// and tests those of all members at once in memory.
//
// A schedule with rounds is what non-blocking collectives of MPI implementations are made of
// (Hoefler, Lumsdaine and Rehm, "Implementation and performance analysis of non-blocking
// collective operations for MPI", SC 2007).
//
//	in a round   order
//	Recvs        all begin together with the sends
//	Sends        all begin together with the receives
//	Locals       one after the other, when all transfers of the round are done
//
// The next round begins after that. Members do not wait for each other between rounds. Messages
// between two members are received in the order in which they were sent.
//
// OverTree says how the communicator's tree carries a call instead, and what its links carry then.
//
// # Order of reductions
//
// Each element is reduced once, at one member, or by the same expression at several; so all
// members get the same bits. With v(i) the vector of rank i, and the element in block b of n:
//
//	algorithm            expression                                            keeps rank order
//	recursive-doubling   pairs of ranks, pairs of pairs, ...; with n not a     yes
//	                     power of two, the first ranks are paired beforehand
//	rabenseifner         the same                                              yes
//	halving              the same, of a power of two                           yes
//	binomial             pairs, pairs of pairs, ..., from the root on (rank 0   yes, by way of rank 0
//	                     of allreduce); those that are left over come last
//	ring                 (((v(b) v(b+1)) v(b+2)) ...) v(b-1)                   no
//	ring, of a reduce-   (((v(b+1) v(b+2)) v(b+3)) ...) v(b)                   no
//	scatter; ring-gather
//	recursive-doubling,  of rank r: v(r-3) v(r-2) with v(r-1) v(r), and so on  yes
//	of a scan            backwards, in parts of 1, 2, 4, ... ranks
//	pairwise             (((v(b) v(b-1)) v(b-2)) ...) v(b+1)                   no
//	chain, linear        (((v(0) v(1)) v(2)) ...)                              yes
//
// Functions that do not commute are given to algorithms that keep the order of ranks alone.
//
// # Sources
//
// Recursive doubling, halving and Rabenseifner's algorithm: Thakur, Rabenseifner and Gropp,
// "Optimization of Collective Communication Operations in MPICH", 2005. Here partners are next to
// each other first, and the farthest last, which keeps the order of ranks. Bruck: Bruck and others,
// "Efficient Algorithms for All-to-All Communications in Multiport Message-Passing Systems",
// 1997. Dissemination: Hensgen, Finkel and Manber, 1988. Ring: Patarasuk and Yuan, 2009. Scan by
// recursive doubling: Hillis and Steele, 1986. Scatter and allgather as broadcast: van de Geijn,
// Barnett and others, 1994.
package schedule
