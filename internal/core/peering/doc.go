// Package peering decides which connections between hosts to dial, accept and close. It
// is a pure core; internal/driver/peer is its driver.
//
// # Who is not authenticated
//
// A connection that another side has made is pending until its greeting has been
// read. There are at most Config.Pending of them, and Config.PendingOfSource of one
// source. One more evicts another, never itself: one of the source that has most,
// there the one that has got least far (silent, then one that has sent something,
// then one whose certificate is verified), and of these the oldest. So a flood from
// one source evicts itself, and each has Config.GreetWithin at most.
//
// # One connection in a class
//
// In a class that is shared, two hosts have one connection, which either has dialled.
// Which one survives where there are two:
//
//	this host has                    the other's call        then
//	no connection, dials not                                 accept
//	no connection, dials             from a smaller name     accept, and abandon the own call
//	no connection, dials             from a larger name      wait for what becomes of the own call:
//	                                                         accepted: refuse as duplicate; failed: accept
//	a connection that it has dialled says that it had it     accept: the other has lost it
//	a connection that it has dialled does not say so         refuse as duplicate: the two calls crossed
//	a connection of the other's      is later                accept: the other has lost it
//	a connection of the other's      is earlier              refuse as duplicate
//
// An accepted call of this host's replaces whatever there is: the other side accepts
// only if it has nothing else, or knows that it is lost. What is replaced is drained:
// nothing more is sent on it, and what was sent still arrives.
//
// In a class that is exclusive every call is a connection of its own.
//
// # Who is there
//
// A greeting names both hosts and both incarnations. One that is for another host, or
// for a later incarnation than this one's, from a host that the certificate does not name,
// or in an earlier incarnation than is known, is refused. A later incarnation is a claim
// to the name, while the earlier one has connections: these are probed, and the first
// sign of life refuses the claim. Without one, the later incarnation closes
// the connections of the earlier one. A host that others know in a later incarnation
// begins the next. Incarnations that are known by greetings alone,
// without certificates, are forgotten a while after the last connection: nobody can
// lock a host out by its name for longer than that, for services forget it then, too. The hosts without a connection of
// which anything is remembered are at most Config.Remember.
package peering
