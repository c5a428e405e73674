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
// View has the nodes that this node considers alive. Notices report its changes in
// order: for each node a join, and a leave with the reason. When changes stop, all nodes
// that can reach each other have equal views; until then views may differ, and a node
// that was only cut off may be missing for a while.
//
// A reader of notices may be slow. It then receives, for each node that changed
// meanwhile, the difference between its last notice and the present: nothing, a leave, a
// join, or a leave followed by a join (another life, or a refuted death). So no notice
// is out of date, and at most two for each node wait.
//
// # Restarts and names
//
// A node that restarts is a new one, with a larger incarnation: the clock's nanoseconds
// at its start. With Config.State the node stores it, and takes a larger one even if the
// clock was set back meanwhile; without, the clock must not go back by more than the
// node was away.
//
// A name belongs to one node. A node that meets another of its own name, at another
// address, that answers, ends with ErrName if it has just started, and logs it
// otherwise. One that does not answer is the node's own earlier life.
//
// # Monitors
//
// Gossip spreads a suspicion in about tau for each hop. A node with Config.Monitor
// receives it directly, at once, from the first node that has it. There can be several
// monitors.
//
// # Zones
//
// One zone has up to some thousands of nodes. Nodes with Config.Management form the
// management zone above; the others elect delegates, which send their zone's view to a
// supervisor there. Every management node has a Census of all zones, and can Fetch the
// view of each.
//
// # Goroutines
//
// A node has one goroutine that owns its core, and one that reads datagrams. Its host has
// one that accepts connections, and one for each connection to a neighbour, about eight.
// Goroutines that dial or write end afterwards. Close waits for all.
//
// # Trust
//
// With Config.TLS a node is the host that its certificate names, and proves what it says of
// itself: no other can raise its incarnation, announce its leave, or accuse in its name.
// With Config.Keys alone connections also use TLS, with a certificate that each node
// derives from the key: a holder of the key may be any node, and say anything of others.
// Keys seal datagrams in both cases. Without either, only loopback addresses are served,
// unless Config.AllowPlaintext is set.
package membership
