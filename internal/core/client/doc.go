// Package client is a host's client of the offload manager, as a core. It serves all
// communicators of the host over one connection, and retries. It is a pure core (see
// package core): hostlib drives it over a gRPC stream, and package sim/world over the
// simulated network.
//
// Each communicator of the host is a member of one group at the manager. The
// lowest rank creates the group, gives the others its number (through its
// communicator, not through this package) and releases it at the end. Every
// member watches the group and reports.
//
// # The connection
//
//	state    Join               Up       Down                 the pause is over
//	idle     Dial; dialing      -        -                    -
//	dialing  -                  up (1)   paused (2)           -
//	up       (1) for it alone   -        paused (2)           -
//	paused   (3)                -        -                    Dial; dialing
//
// (1) Every member starts anew: see below. (2) Every member learns why it has
// no manager; without members, and after an error that cannot pass, the
// connection is idle instead. (3) It learns why there is no connection.
//
// # A member
//
//	state     start (1)            Reply                      Notice, End        Number          Leave
//	idle      asking, or watching  -                          -                  watching        gone
//	asking    -                    watching, or waiting (2)   -                  (3)             gone, or leaving
//	watching  -                    -                          waiting (2)        watching, idle  gone, or leaving
//	waiting   asking, or watching  -                          -                  watching, idle  gone, or leaving
//	failed    -                    -                          -                  watching        gone, or leaving
//	leaving   -                    gone                       -                  -               -
//
// (1) With each new connection, and when a pause is over. The lowest rank sends
// Create first, also where it knows the number: a manager that was away may have
// lost the group, and may have given its number to another. All others, and then
// it, send Watch and Report; the lowest rank does so only by the number that this
// connection's answer names, which it then hears. (2) Failed, if the same request
// cannot succeed later. (3) The number is kept; the answer decides.
//
// Leaving is the lowest rank, until the group is released that the manager of this
// connection has made for it, and no other: after a loss of memory an older number
// may be another's. While asking, it waits for that number first.
//
// Where the communicator is revoked (Input.Over), the Unwatch of each member that watches releases the
// group, at once, since the lowest rank may be dead. That waits for no answer then, unless it is asking.
//
// For the same reason two members may claim the place of one: the same rank of the
// same number. Who heard the number last watches there, the other one is idle, and
// watches when the first has gone on to another number.
//
// A report is sent with each Watch and whenever it changes. It has no answer: what
// it says holds until the member says otherwise, and is said again on the next
// connection.
package client
