// Package peering decides which connections between hosts to dial, accept and close. It
// is a pure core; internal/driver/peer is its driver.
//
// docs/connections.md has the rules: greetings, names and incarnations, classes, limits.
//
// # One connection in a class
//
// In each class two hosts have one connection, which either has dialled. Which one survives
// where there are two:
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
// Renew replaces a connection that is not to be used much longer: it is drained, and dialled
// again at once where a service holds it, otherwise when something is to be sent. It counts for
// what is in use: a driver asks after Accept or Use, and what is drained is being replaced.
//
// # Several paths of a connection
//
// A connection begins with the path of its call, which has the connection's ID. Paired makes the host that has dialled it dial one more path for each
// further pair of rails: Dial, Accept and Use then have Path and Conn, and ID is that of the
// path. Ended with a path's ID ends this path alone, which is dialled again while the
// connection is up; the connection ends with its last path. Its ID remains when its first
// path has ended.
//
//	action or input          is of
//	Ended, ClosePath         one path, by its ID (the first path: the connection's)
//	Close                    a connection with all its paths; or what is not in use: a stranger, a call
//	Drain, Check, Ping,
//	Finished, Sampled        a connection
//	Paired                   a connection; ignored by the host that has not dialled it
//
// Accept of a path comes before ClosePath of the one that it replaces. After Close nothing
// that Ended reports of the connection's paths matters; after ClosePath nothing of this path.
// Calls for paths that are not answered yet are closed by their own ID, before the connection
// is closed or drained.
package peering
