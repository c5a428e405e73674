// Package world puts the protocol cores into a simulated world. Nodes of package sim
// drive the cores as the daemons and package hostlib drive them over sockets.
//
//	node      cores                       as driven by
//	Host      rank                        hostlib
//	Switch    agent, one aggregate a tree internal/daemon/agentd
//	Manager   manager, with pathsel       internal/daemon/managerd
//
// A Fabric is made of a topology: an agent on every switch, and a manager whose
// Disk survives its crashes. Fabric.NewGroup lets members find their trees by the
// manager. NewGroup makes a group without one: the caller installs trees at
// switches and offers them, to whom and when it likes, which is what a test of
// one trace wants. A Plan is a list of random faults for either.
//
// Addresses are made from node numbers (AddrPort, AddrOf), so that a core's
// netip addresses lead to nodes by arithmetic. Data travels as datagrams, what
// members say to each other over connections, and the control plane's messages
// as values beside a connection that reports who is alive.
//
// The tests of this package are the protocol's: every trace that issue 2 names,
// sweeps that let a fault happen at every event of a scenario, and random
// operations in random worlds, which a seed reports again. Nothing else uses the
// world, so all of it is in test files.
package world
