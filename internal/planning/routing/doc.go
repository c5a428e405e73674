// Package routing computes the routes of a switch to the addresses of a fabric's
// links: shortest paths over what is up, where hosts forward nothing.
//
// A packet to the address of a link's end arrives by that link, as collection trees
// that use the address expect, unless the link is down and the end is a host's: then it
// arrives by another link of the host. The address of a switch has a route as long as
// its link is up and leads to another switch, or to the switch itself that the routes
// are of: nobody else sends there.
//
// Where several next hops are equally near, destinations take turns, by another digit
// of their number at each distance, so that switches after one another do not leave
// paths unused. All switches that route by the same view reach every destination:
// with each hop it is nearer.
package routing
