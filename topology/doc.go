// Package topology describes a fabric: hosts, switches, links, and what each switch can
// reduce.
//
// A Graph never changes. It keeps a million hosts in dense arrays: nodes and
// links are small integers, hosts first and switches after them, and the names
// of a generated fabric are computed when they are asked for. What changes in
// a running fabric (a link that fails, a switch that is drained, a capability
// or a load that is learned) is an Overlay: a snapshot of its own version that
// shares all but the changed pages with the one before; Apply and Diff report what
// became different. A View is a graph as one overlay shows it, and what package
// pathsel chooses trees from.
//
// Graphs come from a generator (FatTree, LeafSpine, Clos, Rail, Dragonfly, Torus,
// HyperX, FourSwitches, or Parse for all of them by name), from a file in YAML or
// JSON (Read, ReadFile; the format is in docs/topology.md and its JSON schema in
// Schema), from a Builder, or from another program's file (package importer).
//
// Everything here is safe for concurrent use, the Builder excepted.
package topology
