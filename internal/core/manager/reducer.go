package manager

import (
	"slices"

	"github.com/tributary-fabric/tributary/topology"
)

// MaxReducerNames is the most switches that a TreeReducer names: an Offer goes to
// every member, and must not grow with the tree.
const MaxReducerNames = 8

// TreeReducer is what reduces on some switches of a tree.
type TreeReducer struct {
	topology.Reducer
	Switches int      // how many
	Names    []string // of the first of them, in the tree's order
}

// reducedBy notes what reduces on a site. Members that watch have heard it, or
// hear it with the next tree: it stays what it is while the epoch does.
func (c *Core) reducedBy(t *tree, s *site, by topology.Reducer) {
	if by != s.reducer {
		s.reducer, t.reducers = by, nil
	}
}

// reducedOn returns what reduces on t's switches: each reducer once.
func (t *tree) reducedOn() []TreeReducer {
	if t.reducers != nil {
		return t.reducers
	}
	for i := range t.sites {
		s := &t.sites[i]
		at := slices.IndexFunc(t.reducers, func(r TreeReducer) bool { return r.Reducer == s.reducer })
		if at < 0 {
			at = len(t.reducers)
			t.reducers = append(t.reducers, TreeReducer{Reducer: s.reducer})
		}
		r := &t.reducers[at]
		if r.Switches++; r.Switches <= MaxReducerNames {
			r.Names = append(r.Names, s.on.name)
		}
	}
	return t.reducers
}
