// Package pathsel chooses the collection tree of a group: its root switch, the
// switches between, and the links.
//
// A tree spans the group's hosts over switches that can reduce for the group: up, not
// excluded, with its functions and types, enough free slots, and room for the children
// and the chunk. The best tree depends on the group's purpose and on what other groups
// use (Load). docs/planning.md describes the criteria, the cost model and the methods
// for users.
//
// # Planner
//
// A Planner takes the best tree by a Criterion, or by several with weights; it keeps an
// index of its graph, so that the cost of a plan depends on the size of the group, not
// of the fabric. Without a criterion the group's Purpose decides. A Plan says by which
// criterion and method it was chosen, and whether it is proven optimal; its cost by
// every criterion; the rejected trees and their distance; and, if the bytes are known,
// how long switches and hosts would take by the Model, whose parameters Fit derives from
// measurements. Where hosts are faster and the request allows it, the answer is a
// *HostsFaster, which is an ErrNoTree.
//
// Trees that are equal by the criterion are distinguished by the fewest hops (links
// used, each counted once), then the least depth, then the least addition to what other
// groups use, then by a hash of the group, so that equal choices spread.
//
// # Methods
//
// Level-wise DP. In a fabric whose links all join neighbouring layers (leaf-spine,
// fat-tree, any Clos) the switches up to a layer form components: an edge switch with
// its hosts, a pod, the fabric. A tree needs a switch of a layer in every component of
// that layer that has some but not all members, and one at the top. Layer by layer from
// the hosts, the method computes the cost for each switch to serve the members of its
// component through one switch in each component beneath. If that gives a tree, it has
// the fewest hops and the least depth of all trees, and is the best of these by the
// criterion, in time that grows with the links above the group. By load a tree of more
// hops may be better; see below.
//
// Shortest paths. Elsewhere every member reaches the root over as few links as the
// usable switches allow. Among the shortest-path trees of one root, the fewest links are
// found level by level from the hosts inwards, each covered by as few parents as
// possible, by branch and bound with a budget. Small fabrics try every usable switch as
// the root; larger ones order the candidates by a bound from a bit-parallel
// breadth-first search from up to 64 of the group's switches, and try them within a
// budget. By latency the paths are shortest in time (Dijkstra).
//
// Steiner. The smallest tree need not have shortest paths. Package
// internal/planning/steiner approximates it (Mehlhorn, then local search, within a budget
// of work units) over the hops or over the load's prices; the better result of the two
// methods by the criterion wins.
//
// Forwarding. With Request.Forward an edge may lead over switches that do not reduce:
// they cannot, or must not (Request.Idle). Each end of an edge sends to an address on
// the edge's link at the other end, so an edge is allowed where shortest-path routing
// must take its links: all but the last are the only shortest path from its one end, all
// but the first that from its other end, and the ends are not nearer to each other. Such
// edges are edges of several links in the Steiner problem. With Request.Slim, switches
// that could reduce also forward, where the tree is no worse by the criterion: those
// with one child, and a root between two.
//
// # Load
//
// LeastLoad prices every link, switch CPU and slot by its present use. A link's use is
// the trees on it, each weighted by how slow the link is against the fastest of the
// fabric; a switch CPU's is the trees on it; that of its slots the reserved share. Links
// by their lower layer, and CPUs and slots by their layer, are classes; in a fabric
// without layers there is one class of each kind. A tree that adds p to a use u costs
//
//	exp((u+p)/S) - exp(u/S)
//
// divided by the measured free share of the link or CPU; CPUs and slots weigh a
// sixteenth. S, the scale of the class, is a twelfth of its level, from the first tree
// on: the root mean square of its uses, but no less than half of the largest mean use
// that the links of one switch must have, or of the largest use of a CPU. So classes
// with many trees on a resource and classes with few have prices of the same size. This
// is the rule of Aspnes, Azar, Fiat, Plotkin and Waarts (On-line routing of virtual
// circuits with applications to load balancing and machine scheduling, JACM 44(3), 1997,
// section 3) with trees instead of paths, and with scales below those of their proof,
// whose flat prices balance few groups badly. docs/benchmarks.md has measurements.
//
// Detours. Local search improves the cheapest tree of the fewest hops: it reconnects a
// branch over the cheapest path to the rest of the tree, if that is cheaper. A link
// costs there at least as much as one of the expected use: its class's level, or the
// largest mean use that the links of one switch must have, as a whole number. So no tree
// gets longer to avoid links with no more than that. Budgets are in visited links.
//
// # Several trees of one communicator
//
// Stripes are trees of the same members, Parts trees of some members each. Each must
// avoid those before it (Request.Avoid): their links and switches, including those of
// the members; or their links between switches and the switches above the members'; or
// those links; or nothing. The first of these that allows a tree decides, before the
// criterion.
//
// # Repair
//
// Index finds the trees on a link or switch. Planner.Repair joins what is left of a
// broken tree and changes nothing else; its answer compares the outcome with a fresh
// plan. Plan does so with Request.Old, and takes the repaired tree unless a new one is
// better by more than Config.Keep; an intact old tree stays by the same rule.
//
// Nothing here depends on map order, time or chance: the same request always has the
// same answer.
package pathsel
