// Package rails measures messages between hosts that several rails join: latency and
// bandwidth, beside a plain TCP connection, UCX and Open MPI on the same links, and what
// happens to them while links fail and recover on a schedule.
//
// A [Schedule] is what fails when. Each contestant takes turns with the others, round
// after round; Tributary's and the plain connection's ends are processes ([Play]) in the
// hosts' namespaces, which speak lines of JSON. Every message of a stream has a number and
// a checksum: a [Ledger] at the receiver counts what was lost, doubled, out of order or
// corrupted, and a [Meter] has the longest time without progress and the rate of any part.
package rails
