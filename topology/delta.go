package topology

import (
	"errors"
	"fmt"
)

// Delta is what differs between two views of one graph: for an index of trees
// by node and link, where to look. Each list ascends; a link is in one only for
// a state of its own, not for that of its ends.
type Delta struct {
	NodesDown, NodesUp []NodeID // that failed, and that came back
	LinksDown, LinksUp []LinkID
	Capabilities       []NodeID // switches that can do something else than before
	NodeUse            []NodeID // nodes whose CPU is busier or less busy
	LinkUse            []LinkID // links that are busier or less busy
}

// ErrOtherGraph is wrapped by Diff's error about views of two graphs.
var ErrOtherGraph = errors.New("views of two graphs")

// Empty reports whether the views show the same.
func (d *Delta) Empty() bool {
	return !d.Structural() && len(d.NodeUse)+len(d.LinkUse) == 0
}

// Structural reports whether more differs than how busy nodes and links are: a
// tree may have become impossible, or a better one possible.
func (d *Delta) Structural() bool {
	return len(d.NodesDown)+len(d.NodesUp)+len(d.LinksDown)+len(d.LinksUp)+len(d.Capabilities) > 0
}

// Diff returns what differs from before to after. Between snapshots of which
// one grew out of the other it looks only at what changed: the work grows with
// the changes, and with a million nodes by the comparison of a thousand
// pointers. It fails for views of two graphs.
func Diff(before, after View) (Delta, error) {
	if before.graph != after.graph {
		return Delta{}, fmt.Errorf("compare views: fabrics %q and %q: %w", before.graph.fabric, after.graph.fabric, ErrOtherGraph)
	}
	a, b := before.state(), after.state()
	g, d := before.graph, Delta{}
	d.NodesDown, d.NodesUp = split[NodeID](&a.nodesDown, &b.nodesDown)
	d.LinksDown, d.LinksUp = split[LinkID](&a.linksDown, &b.linksDown)
	a.caps.differ(&b.caps, func(i int) {
		if was, is := a.caps.at(i), b.caps.at(i); was == nil || is == nil || *was != *is {
			d.Capabilities = append(d.Capabilities, g.Switch(i))
		}
	})
	a.nodeUse.differ(&b.nodeUse, func(i int) { d.NodeUse = append(d.NodeUse, NodeID(i)) })
	a.linkUse.differ(&b.linkUse, func(i int) {
		was, is := a.linkUse.at(i), b.linkUse.at(i)
		for j := range was {
			if was[j] != is[j] {
				d.LinkUse = append(d.LinkUse, LinkID(8*i+j))
			}
		}
	})
	return d, nil
}

// split returns what is in the set after and not in before, and the other way round.
func split[T ~int32](before, after *bitPages) (in, out []T) {
	before.differ(after, func(i int) {
		if after.at(i) {
			in = append(in, T(i))
		} else {
			out = append(out, T(i))
		}
	})
	return in, out
}

// state returns the overlay of v, an empty one where nothing has changed.
func (v View) state() *Overlay {
	if v.overlay == nil {
		return &Overlay{graph: v.graph}
	}
	return v.overlay
}

// Apply is With, and reports what the changes made different: a change to what
// holds already, or one that a later change takes back, is not in the Delta.
func (o *Overlay) Apply(changes ...Change) (*Overlay, Delta, error) {
	next, err := o.With(changes...)
	if err != nil {
		return nil, Delta{}, err
	}
	delta, err := Diff(o.View(), next.View())
	return next, delta, err
}
