package main

import (
	"fmt"

	"github.com/tributary-fabric/tributary/bench/netlab"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// carriage is what links have carried, in each direction.
type carriage struct {
	least, most uint64 // bytes, of those that a tree is on
	stray       uint64 // at most, of the others
	dropped     uint64 // packets that found a queue full
	alarms      []string
}

// audit compares what the links of g carried, by LinkID, with where a tree is: each
// direction of a link that it is on is to have carried wanted bytes at least, and of
// others stray ones at most.
func audit(g *topology.Graph, tree pathsel.Tree, carried netlab.Counts, wanted, stray uint64) carriage {
	on := make([]bool, g.Links())
	for l := range tree.Links() {
		on[l] = true
	}
	c := carriage{least: ^uint64(0)}
	for l, link := range g.AllLinks() {
		for end, count := range carried[l] {
			c.dropped += count.Dropped
			is, bound, alarm := "on a tree", "least", false
			if on[l] {
				c.least, c.most = min(c.least, count.Bytes), max(c.most, count.Bytes)
				alarm = count.Bytes < wanted
			} else {
				c.stray = max(c.stray, count.Bytes)
				is, bound, alarm = "on no tree", "most", count.Bytes > stray
			}
			if alarm {
				limit := map[bool]uint64{true: wanted, false: stray}[on[l]]
				c.alarms = append(c.alarms, fmt.Sprintf("link %s is %s, and carried %d bytes from %s; at %s %d were to be",
					g.LinkName(l), is, count.Bytes, g.Name(link.Ends[end].Node), bound, limit))
			}
		}
	}
	return c
}
