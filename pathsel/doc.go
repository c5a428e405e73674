// Package pathsel chooses the collection tree of a group: its root switch, the
// switches between, and the links. docs/planning.md says by what, how, and how well.
//
// A tree spans the group's hosts over switches that can all reduce what the
// group asks: up, not excluded, with the functions and types, enough free
// slots, room for the children and for the chunk. Which tree is best depends on
// what the group does, and on what other groups use already (Load).
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
// In fabrics whose links all join neighbouring layers trees are found layer by layer
// (levelwise_dp.go), in others, and where that gives none, by shortest paths (select.go,
// shortest_time.go) and as Steiner trees (steiner_input.go), with edges over switches
// that only forward where these are allowed (forward.go). By the load a tree is then
// improved by detours (detour.go), at the prices of price.go. Index finds the trees on
// a link or switch; Planner.Repair joins what is left of a broken one.
//
// Nothing here depends on map order, time or chance: the same request has
// always the same answer.
package pathsel
