package p4

import (
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// Own returns what the program reduces by itself in a tree of so many children
// whose slots end before the slot of that number. All else it hands over. Sums of
// block32 take a place for each child in a slot that has such places.
func Own(children, end int) topology.Pairs {
	var p topology.Pairs
	for t, functions := range own {
		p[t] = topology.Functions(functions)
	}
	if children > BlockChildren || end > BlockSlots {
		p[reduce.Block32] = 0
	}
	return p
}
