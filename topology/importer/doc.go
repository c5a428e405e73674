// Package importer reads fabrics from other programs' files. Formats are the output of
// ibnetdiscover, Slurm's topology.conf, containerlab files, the topology.json of the P4
// tutorials, and graphs in GML and GraphML as the Internet Topology Zoo has them.
// docs/topology.md reports what is taken from each.
//
// Such files are irregular. What can be settled is, and the Report says line by
// line what was skipped, changed or assumed, and why: a cable that leads out of
// the fabric, a name that two switches share, a link without a speed. What
// contradicts itself is an error that names the line and what to do about it:
// a link to what is not there, a cycle in a hierarchy, a bandwidth of nothing.
//
// No reader builds the graph itself: each fills a draft (nodes by the file's own
// IDs, and links between them), and the draft settles names, ports, and what is
// a host, in one way for all formats.
package importer
