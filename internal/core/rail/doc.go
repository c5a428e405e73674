// Package rail has the pure cores of messages over several rails between two hosts.
//
// A [Peer] is one host's half of all messages to and from one other host. It stripes
// them over the paths that there are, and they survive the loss of any path. Where none is left
// they wait for the next, until [Reach] takes the peer for lost. It follows the bfo component of Open MPI (shared/seeds/rail-failover.txt).
//
// # Flows
//
//	MATCH   sender > MATCH > receiver                      up to Config.Eager bytes
//	FRAG    sender > RNDV > receiver > ACK > sender > FRAG... > receiver
//	PUT     sender > RNDV > receiver > PUT > sender > WRITE... > receiver; sender > FIN > receiver
//	GET     sender > RGET > receiver > READ > sender > DATA... > receiver; receiver > FIN > sender
//	store   origin > STORE > target > ACK > origin > FRAG... > target > FIN > origin
//	load    origin > LOAD > target > FRAG... > origin
//
// Store and load are one-sided: they name a region of the other host's memory, see
// [Memory]. Envelopes (MATCH, RNDV, RGET, STORE, LOAD) have sequence numbers, are taken
// in their order, and each once. A fragment with a body of a user's memory lends it to
// the transport until its completion.
//
// # Places
//
// A transport may read the body of FRAG, WRITE or DATA to where Place says, in any number of
// reads, and then calls Placed in place of Arrived. Invariant: the memory of a receive is written between its begin and
// its Done alone, by one call or between one Place and the next call. So a place ends with
// the next call of the Peer, and the driver asks again; whatever ends the receive, or restarts it, leaves
// nothing for late fragments, of whatever path, however much of them was placed before. What was
// placed of a fragment counts for nothing before Placed: the message may be sent again over it.
//
// # Room
//
// The other side may send envelopes, and bytes with them, that no receive has matched up to
// Config.MaxHeads and MaxUnexpected. CREDIT reports what has been matched. A MATCH for which there is
// no room for bytes goes as RNDV. Envelopes of requests that go First have a queue of their own, and
// a quarter of MaxHeads beyond the others. When that is used, too, while a receive that is First
// waits, its message may be behind those that are here, of operations that begin later: then
// CREDIT lends MaxHeads envelopes more, for the rest of the session, up to 15 times.
//
// # Failures
//
// A fragment completes without error when the other host's driver has acknowledged it.
// One that completes with an error may have arrived all the same. Nothing is kept of a
// fragment after its completion. After an error:
//
//	MATCH, LOAD, FIN                     sent again, from the fragment itself: its request may be complete
//	a message of the dance               sent again, unless the dance has gone on
//	RNDV, RGET, STORE, ACK, PUT, READ,   the request is in error: it restarts when nothing of it is outstanding
//	FRAG, WRITE, DATA
//
// The restart is a dance of four messages. Each restart has a number, which all
// fragments of the request carry; those of an earlier one are dropped. [Dance] is its
// table of transitions; tests drive a Peer through each row.
//
//	sender                                           receiver
//	drained: RNDVRESTARTNOTIFY r+1            >
//	                                          <      drained: RNDVRESTARTACK r+1
//	NOTIFY completed, ACK there: RNDV r+1     >      answers as at first; it is not matched again
//
//	                                          <      an own fragment failed, drained: RECVERRNOTIFY r
//	in error, drained: RNDVRESTARTNOTIFY r+1  >      and so on
//
//	RNDVRESTARTNOTIFY r+1                     >
//	complete                                  <      has all of it: RNDVRESTARTNACK r+1
package rail
