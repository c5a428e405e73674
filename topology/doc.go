// Package topology describes a fabric: hosts, switches, links, and what each switch can
// reduce.
//
// A Graph is immutable. It keeps a million hosts in dense arrays: nodes and links are
// small integers, hosts first and switches after them, and the names of a generated
// fabric are computed on demand. An Overlay records changes of a running fabric (failed
// links, drained switches, learned capabilities and load): a snapshot with a version,
// which shares unchanged pages with the one before; Apply and Diff report what changed.
// A View is a graph as one overlay shows it; package pathsel chooses trees from it.
//
// Graphs come from a generator (FatTree, LeafSpine, Clos, Rail, Dragonfly, Torus,
// HyperX, FourSwitches, or Parse for all of them by name), from a file in YAML or
// JSON (Read, ReadFile; the format is in docs/topology.md and its JSON schema in
// Schema), from a Builder, or from another program's file (package importer).
//
// Everything here is safe for concurrent use, except the Builder.
package topology
