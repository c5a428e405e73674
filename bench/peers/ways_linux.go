package peers

import (
	"slices"

	"github.com/tributary-fabric/tributary/bench/timing"
	"github.com/tributary-fabric/tributary/internal/core/schedule"
)

// ways returns a contestant for each way of Tributary's, and one for its choice.
func ways(own *crew) []*contestant {
	all := []*contestant{
		{name: timing.Implementation + "-" + timing.Chosen, variant: timing.Chosen, crew: own},
		{name: timing.Implementation, variant: timing.Tree, crew: own, isTree: true},
		{name: timing.Implementation + "-" + timing.TreeOfHosts, variant: timing.TreeOfHosts, crew: own, isTree: true},
	}
	for a := schedule.Auto + 1; a < schedule.Algorithms; a++ {
		all = append(all, &contestant{name: timing.Implementation + "-" + a.String(), variant: a.String(), crew: own, algorithm: a})
	}
	return all
}

// isWay reports whether a contestant is a way of doing a row.
func (c *contestant) isWay(row Row, ranks int) bool {
	call := row.collective().Call(ranks, row.Bytes)
	if c.isTree {
		return hasTree(&call)
	}
	return slices.Contains(schedule.Possible(&call), c.algorithm)
}
