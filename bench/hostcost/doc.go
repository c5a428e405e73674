// Command hostcost measures what a host spends on an allreduce beside the system calls
// that carry it. A host of hostlib and a minimal host, which has no protocol, take turns:
// both send GSO batches (the datagrams of one sendmsg with UDP_SEGMENT) to a process
// that answers each contribution with a result of the same bytes, and copy the results
// to their vector.
//
//	go run -C bench ./hostcost
//	go run -C bench ./hostcost -sizes 8 -only hostlib
//
// It prints processor time of this process by operation, batch and chunk, as medians of
// rounds, and the median of the rounds' ratios to the minimal host. The minimal host is
// measured three times: as such; with results received straight into the vector; and
// with MSG_ZEROCOPY. All share one processor (-cpu), so that nobody polls while the
// other side could work.
//
// The host of hostlib is a member of a group of two over a tree of switches, whose data
// socket is diverted to that process: manager, agent and the other member are idle.
//
// BenchmarkWithoutSystemCalls measures the host of hostlib alone, over a socket that answers
// at once.
package main
