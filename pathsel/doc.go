// Package pathsel chooses the collection tree of a group: its root switch, the
// switches between, and the links.
//
// A tree spans the group's hosts over switches that can all reduce what the
// group asks: up, not excluded, with the functions and types, enough free
// slots, room for the children and for the chunk. Which tree is best depends on
// what the group does, and on what other groups use already (Load).
//
// # Two ways to ask
//
// A Planner takes the best tree by a Criterion, or by several with weights; it
// keeps an index of its graph, so that a plan costs what the group is large and
// not what the fabric is. What the group is for (Purpose) decides the criterion
// where it is not given. A Plan says by which criterion, by which method, and
// whether it is proven to be the best; what it costs by every criterion; which
// trees lost, and by how much; and, where the bytes are known, how long switches
// and how long hosts would take by the Model, whose numbers Fit finds from
// measurements. Where hosts are faster and the request allows it, the answer is a
// *HostsFaster, which is an ErrNoTree.
//
// Trees that are equal by the criterion are distinguished by the fewest hops (links
// used, each counted once), then the least depth, then what adds the least to what
// other groups use, then by a hash of the group, so that equal choices spread.
//
// # Methods
//
// Levels. In a fabric whose links all join neighbouring layers (leaf-spine,
// fat-tree, any Clos) the switches up to a layer fall into components: an edge
// switch with its hosts, a pod, the fabric. A tree needs at least one switch of
// a layer in every component of that layer that has members and cannot hold
// them all, and one at the top. The method computes, layer by layer from the
// hosts, what it costs each switch to serve all members of its component through
// one switch in each component beneath. If that gives a tree, it has the fewest
// hops and the least depth of all trees whatever, and is the best of these by
// the criterion: exact, in time that grows with the links above the group. By the
// load a tree of more hops may be better; see below.
//
// Shortest paths. Elsewhere every member reaches the root over as few links as
// the usable switches allow. Among the shortest-path trees of one root, the
// fewest links are found level by level from the hosts inwards, each covered by
// as few parents as possible, by branch and bound with a budget. Small fabrics
// have every usable switch tried as the root; in larger ones the candidates are
// ordered by a bound that a bit-parallel breadth-first search from (up to 64 of)
// the group's switches gives for all at once, and tried in that order within a
// budget. By latency the paths are shortest in time (Dijkstra).
//
// Steiner. The smallest tree need not have shortest paths. Package
// internal/planning/steiner approximates it (Mehlhorn, then local search, within a budget
// of work units) over the hops or over the prices of the load; the better of the
// two methods by the criterion wins.
//
// Forwarding. With Request.Forward an edge may lead over switches that do not
// reduce, since they cannot or are not to (Request.Idle). Each end of an edge
// sends to an address on the edge's link at the other end, so that an edge is
// allowed where routing by shortest paths cannot but take its links: all but the
// last are the only shortest way from its one end, all but the first that from its
// other end, and the ends are not nearer to each other. Such edges go into the
// Steiner problem as ones of several links. With Request.Slim, switches that could
// reduce forward as well, where the tree is no worse by the criterion: those with
// one child, and a root between two.
//
// # Many groups
//
// LeastLoad prices every link, switch CPU and slot by its present use. A link's
// use is the trees on it, each counted by how slow the link is against the
// fastest of the fabric; a switch CPU's is the trees on it; that of its slots the
// share that is reserved. Links by their lower layer, and CPUs and slots by their
// layer, are classes of their own; in a fabric without layers there is one class of
// each kind. A tree that adds p to a use u costs there
//
//	exp((u+p)/S) - exp(u/S)
//
// divided by what measurements say is left of the link or CPU; CPUs and slots count
// a sixteenth. S, the scale of the class, is a twelfth of its level, from the first
// tree on: the root mean square of its uses, but no less than half of the largest
// mean use that the links of one switch must have, or of the largest use of a CPU.
// So classes in which a resource carries many trees and such in which it carries few
// have prices of the same size. This is the rule of Aspnes, Azar, Fiat, Plotkin and
// Waarts (On-line routing of virtual circuits with applications to load balancing
// and machine scheduling, JACM 44(3), 1997, section 3) with trees in place of paths,
// and with scales below those for which they prove a bound: their proof needs one
// that is as large as the optimum, and prices that flat balance few groups badly.
// What is measured is in docs/planning.md.
//
// Detours. The cheapest tree of the fewest hops is improved by local search: a
// branch is taken off its parent and hung elsewhere over the cheapest way to the rest
// of the tree, where that is cheaper. A link counts there at least as much as one
// whose use is what must be expected: its class's level, or the largest mean use that
// the links of one switch must have, as a whole number. So no tree is longer for the
// sake of links that are not used more than that. The budgets are in links that are
// looked at.
//
// # Several trees of one communicator
//
// Stripes are trees of the same members, Parts trees of some members each. Each is
// to be apart from those before (Request.Avoid): off their links and switches, also
// those of the members; or off their links between switches and the switches above
// the members'; or off those links; or else anywhere. The first of these that has a
// tree decides, before the criterion.
//
// # Change
//
// Index finds the trees on a link or switch. Planner.Repair joins what is left
// of a broken tree and touches nothing else; its answer compares the outcome
// with a fresh plan. Plan does so with Request.Old, and takes the repaired tree
// unless a new one is better by more than Config.Keep: an old tree that nothing is
// wrong with stays as it is unless it is worth the change.
//
// Nothing here depends on map order, time or chance: the same request has
// always the same answer.
package pathsel
