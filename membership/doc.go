// Package membership reports the live nodes of a zone and replicates small attributes
// of each. Changes are known within milliseconds where it matters. It is a driver over
// pure cores (internal/core/zone, and internal/core/hierarchy above it): UDP carries
// heartbeats, suspicions and notices to monitors; the connections between hosts, which
// it shares with all services of the process, carry views, updates and attributes. Both
// have one port number. docs/membership.md has the protocol and its design.
//
//	node, err := membership.Join(ctx, membership.Config{
//		Name: "h3", Listen: "10.0.0.3:7946", Bootstrap: []string{"10.0.0.1:7946", "10.0.0.2:7946"},
//		Keys: keys,
//	})
//	for notice := range node.Notices(ctx) {
//		...
//	}
//	err = node.Leave(ctx, 0)
//
// # View and notices
//
// View is who this node holds for alive. Notices report how it changes, in order:
// for each node a join, and a leave that says why. When nothing changes any more,
// the views of all that can reach each other are equal; until then they may differ, and a
// node that was only cut off may have been gone for a while.
//
// A reader of notices may be as slow as it wants. It then finds for each node
// that changed meanwhile what brings it from what it was given last to what is
// now: nothing, a leave, a join, or a leave and a join after it, which reports of
// another life or of a death that was none. So it is never reported a wrong state, and what
// waits for it is bounded by two notices a node, however long it sleeps.
//
// # Lives
//
// A node that starts again is another one: its incarnation is larger. It is the
// clock's nanoseconds at the start. A node that has Config.State keeps it there,
// and begins with a larger one also if its clock was put back meanwhile; without
// it, the clock must not go back by more than the node was away.
//
// A name is one node's. Who meets another of its own name that answers, at another
// address, ends with ErrName if it has only just started, and logs it otherwise. One
// that does not answer is the node's own earlier life.
//
// # Monitors
//
// A suspicion reaches all by gossip, in about tau for each hop. A node with
// Config.Monitor gets it directly from whoever has it first, at once. There can
// be several monitors.
//
// # Zones
//
// One zone holds some thousands of nodes. Above that, nodes with Config.Management
// make up the management zone; the others choose delegates among themselves,
// that bring their zone's view to a supervisor there. Every management node has a Census
// of all zones, and can Fetch the view of each.
//
// # What runs
//
// A node has one goroutine that owns its core, and one that reads datagrams. Its host has
// one that accepts, and one for each connection to a neighbour, some eight. Those that
// dial or write exist while they do. Close waits for all.
//
// # Trust
//
// With Config.TLS a node is the host that its certificate names. With Config.Keys alone
// connections are under TLS, too, by a certificate that each makes of the key: who has it
// may be any node. Datagrams are sealed by the keys, in both cases. Without either only
// loopback addresses are served, unless Config.AllowPlaintext.
package membership
