package hostlib

import (
	"slices"

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
// tributary_agent_handed_packets_total shows what their CPUs did.
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
			all = addReducer(all, Reducer{r.Serves(o.function, o.element), r.Switches, r.Names})
		}
	}
	return all
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
			by[tree[i].Serves(o.function, o.element)] = true
		}
	}
	return by
}
