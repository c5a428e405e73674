// Package hierarchy federates base zones by a management zone. It has the two
// roles in it, each beside the zone.Core of its node: Delegate, which every node
// of a base zone has, and Supervisor, which every node of the management zone
// has.
//
// # Delegates
//
// The nodes of a base zone elect Config.Delegates of themselves by attributes
// (election.go). Who is elected declares itself, also as a high priority
// monitor, connects to the zone's supervisors, and sends each of them its view
// and what changes in it.
//
//	state      meaning                          leaves by
//	waiting    the view has not settled yet     Settle without a join or a leave
//	settled    not a delegate                   being elected
//	active     declared                         being one too many, or reaching no supervisor for too long
//
// # Supervisors
//
// Every zone has Config.Supervisors of them. Which ones is computed alike by
// every node of the management zone, from the view and the attributes
// (placement.go): who supervises a zone says so by an attribute and remains; a
// place that is free goes to the next node from the zone's home on. A delegate
// may ask any of them, and is reported.
//
//	state      meaning                          leaves by
//	absent     another's zone                   the hello of a delegate, if it is to be here
//	held       delegates are connected          all are gone: lingering; too many, or an heir: leaving
//	lingering  no delegate                      a hello; Linger
//	leaving    others are to supervise it       each of them has a delegate
//
// Nothing moves, but for balance: where nothing has changed for Config.Balance, and
// one has two zones more than another, it names the other as the heir of one.
//
// The attribute of a zone has the number of delegates that are connected, and
// the size and the digest of the view, so that every node has the census of the
// whole. The view itself can be fetched from a supervisor, in pieces, and
// followed.
//
// # Links
//
// Connections between the roles are of their own, dialled by delegates and by
// who fetches. Each end beats when it has nothing else to say, and gives up an
// end that is silent. What is lost is replaced at once: a supervisor by the
// other ones, as soon as the management zone has noticed; a delegate by its zone.
//
// docs/membership.md has the reasons.
package hierarchy
