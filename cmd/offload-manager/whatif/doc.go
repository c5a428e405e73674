// Package whatif plans trees offline, in the fabric of a file: which tree a
// group would have, what it costs, what lost and by how much; beside which other
// groups; and what becomes of it when links, switches or hosts are down.
package whatif
