// Package world puts the protocol cores into a simulated world. Nodes of package sim
// drive the cores as the daemons and package hostlib drive them over sockets.
//
//	node      cores                       as driven by
//	Host      rank; rail, schedule.Run    hostlib, hostlib/rail
//	Switch    agent, one aggregate a tree internal/daemon/agentd
//	Manager   manager, with pathsel       internal/daemon/managerd
//
// A Fabric is made of a topology: an agent on every switch, and a manager whose
// Disk survives its crashes. Fabric.NewGroup lets members find their trees by the
// manager. NewGroup makes a group without one: the caller installs trees at
// switches and offers them, to whom and when it likes, which is what a test of
// one trace wants. A Plan is a list of random faults for either.
//
// A Host may have rails, each a node of its own (nic) with a connection to the same rail of
// each other member: over them go the messages of collectives by algorithms of hosts. A
// rail breaks, is cut, slow, or deaf in one direction; a path that owes acknowledgements
// for too long is closed, as drivers do. A member is lost for another only when no rail has joined
// them for long, which is so in some stories. Peering is not simulated here: connections are the
// world's.
//
// Addresses are made from node numbers (AddrPort, AddrOf), so that a core's
// netip addresses lead to nodes by arithmetic. Data travels as datagrams, what
// members say to each other over connections, and the control plane's messages
// as values beside a connection that reports who is alive.
//
// The tests of this package are the protocol's: every trace that issue 2 names,
// sweeps that let a fault happen at every event of a scenario, and random
// operations in random worlds, which a seed reports again. TestEverything has all
// collectives over trees and by messages, several at once, and deaths of members, hosts,
// switches with their agents, links, rails and the manager:
//
//	go test ./internal/sim/world -run Everything -everything 100000 -timeout 60m
//	go test ./internal/sim/world -run Everything -story 17 -deaths -v
//
// An operation that ends is right, by a sequential oracle. Where no member dies, all
// operations end right. Where one does, each survivor ends each operation right, or with an
// error that names the dead, within the time of detection and of the faults that hold the
// news up. Nothing else uses the world, so all of it is in test files.
package world
