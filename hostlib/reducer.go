package hostlib

import (
	"slices"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// Reducer is what reduced an operation on some switches of a tree.
type Reducer struct {
	// By is the pipeline of these switches, or topology.AgentCPU where that leaves
	// the operation's function and type to the switch's agent.
	By       topology.Pipeline
	Switches int      // how many
	Names    []string // of the first few of them. Not to be changed
}

// Reducers returns what reduced the operation on the switches of its trees, by what
// their agents say of each tree; none of an operation over hosts. The agents' metric
// tributary_agent_handed_packets_total shows what their CPUs did. Of a Reproducible sum
// it has what reduced either of its two operations: that of the marks, and the sum.
func (o *Outcome) Reducers() (all []Reducer) {
	for i := range o.Stripes {
		for _, r := range o.Stripes[i].Reducers() {
			all = addReducer(all, r)
		}
	}
	if len(o.Stripes) > 0 {
		return all
	}
	if o.Transport == HostTree {
		return nil
	}
	for _, tree := range o.trees {
		for i := range tree {
			r := &tree[i]
			for _, by := range o.servers(r) {
				all = addReducer(all, Reducer{by, r.Switches, r.Names})
			}
		}
	}
	return all
}

// servers returns what reduced the operation on a tree's switches of one kind: the marks of a Reproducible sum,
// and the sum. Where there are no marks, both are alike; a sum of no elements has no function.
func (o *Outcome) servers(of *manager.TreeReducer) [2]topology.Pipeline {
	sum := of.Serves(o.function, o.element)
	marks := sum
	if o.Reproducible && o.function == reduce.Sum {
		marks = of.Serves(reduce.Max, reduce.Uint32)
	}
	return [2]topology.Pipeline{marks, sum}
}

// addReducer adds r to those that are by the same pipeline on the same switches, or
// as a further one.
func addReducer(all []Reducer, r Reducer) []Reducer {
	if slices.ContainsFunc(all, func(x Reducer) bool {
		return x.By == r.By && x.Switches == r.Switches && slices.Equal(x.Names, r.Names)
	}) {
		return all
	}
	return append(all, r)
}

// servedBy returns, by topology.Pipeline, what reduced on at least one switch. It
// allocates nothing.
func (o *Outcome) servedBy() (by [topology.Pipelines]bool) {
	for i := range o.Stripes {
		for p, on := range o.Stripes[i].servedBy() {
			by[p] = by[p] || on
		}
	}
	if len(o.Stripes) > 0 || o.Transport == HostTree {
		return by
	}
	for _, tree := range o.trees {
		for i := range tree {
			for _, p := range o.servers(&tree[i]) {
				by[p] = true
			}
		}
	}
	return by
}
