// Package peering decides which connections between hosts to dial, accept and close. It
// is a pure core; internal/driver/peer is its driver.
//
// docs/connections.md has the rules: greetings, names and incarnations, classes, limits.
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
package peering
