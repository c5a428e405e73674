// Package setting is how members change that by which they choose the ways of operations: all at
// one operation, although none of them knows how far the others are. The core changes the setting
// when the lowest rank wishes another one.
//
// Its messages travel over the host connections of the tree of hosts, as those of package epoch do.
// An operation has a position among all that a member calls. In a round each member promises not to
// choose the way of any operation from a position on before the round's decision, which takes the
// largest of these positions. A member promises some operations more than it has called, and so
// waits for a decision only if it has called all of these before that comes.
//
// # States
//
//	state     input                               effect
//	idle      Ask of a later round; or, at the    Asked; Ask to the children; asked
//	          lowest rank, a wish that is not the
//	          setting
//	asked     the member's own promise            -
//	          a child's promise of this round     -
//	          all of them are there               Promise to the parent; promised. At the lowest rank:
//	                                              Decided, Decide to the children; idle
//	promised  Decide of this round                Decided; Decide to the children; idle
//
// Other messages have no effect. Nothing is acknowledged: a new connection has both sides repeat
// what the other may not know. Rounds are numbered from 1.
package setting
