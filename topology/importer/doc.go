// Package importer reads fabrics from other programs' files. Formats are the output of
// ibnetdiscover, Slurm's topology.conf, containerlab files, the topology.json of the P4
// tutorials, and graphs in GML and GraphML as the Internet Topology Zoo has them.
// docs/topology.md describes each.
//
// Such files are irregular. The importer resolves what it can, and the Report says line
// by line what was skipped, changed or assumed, and why: a cable that leads out of the
// fabric, a name that two switches share, a link without a speed. A contradiction is an
// error that names the line and the correction: a link to an unknown node, a cycle in a
// hierarchy, a bandwidth of zero.
//
// No reader builds the graph itself: each fills a draft (nodes by the file's own IDs,
// and links between them), which resolves names, ports, and which nodes are hosts, in
// one way for all formats.
package importer
