// Package picture draws a fabric and a collection tree as SVG.
//
// Hosts stand at the bottom, switches in tiers above them. Every link is thin
// and light but those of the tree, which are thick; the root has a double
// border and says so, switches that reduce are distinguished from those that only
// forward, members from other hosts, switches that are drained or whose agent
// cannot serve from those that are ready, and what is down is grey and marked with a cross.
// A legend says all that. Of a fabric with more than MaxNodes nodes only the
// tree is drawn, of a tree that is larger only its upper rows, with a box for
// all that is beneath each switch of the last; and where there is no tree, boxes
// stand for what is alike (outline.go). A note says so.
//
// A tier is a layer of the topology, and equal fabrics look equal (place.go,
// route.go). The same scenes give the same bytes.
//
// In the SVG, elements can be found by their class and id: "node switch
// reduces", "node switch draining", "node host member", "edge tree", "edge forwarding", "edge down";
// a node's id is "s1-" and its name, a link's "s1-link-" and its LinkID, where 1
// is the number of the scene; what belongs to the legend has class "legend".
package picture
