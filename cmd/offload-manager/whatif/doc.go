// Package whatif plans trees offline, in the fabric of a file. It shows which tree a
// group would have, what it costs, which candidates were rejected and by how much;
// beside which other groups; and the effect of links, switches or hosts that are down.
package whatif
