package demo

import (
	"fmt"
	"io"

	"github.com/tributary-fabric/tributary/internal/whole/picture"
	"github.com/tributary-fabric/tributary/topology"
)

// SVG draws the fabric with each tree that was seen.
func (r *Report) SVG(w io.Writer) error {
	members := make([]topology.NodeID, r.graph.Hosts())
	for n := range members {
		members[n] = topology.NodeID(n)
	}
	scenes := []picture.Scene{{View: r.graph.View(), Members: members}}
	if len(r.trees) > 0 {
		t := r.trees[0]
		scenes[0].Tree, scenes[0].Heading = t.tree, fmt.Sprintf("The tree of epoch %d", t.epoch)
	}
	if r.killed != topology.NoNode {
		failed, err := topology.NewOverlay(r.graph).With(topology.NodeState(r.killed, false))
		if err != nil {
			return err
		}
		after := picture.Scene{View: failed.View(), Members: members}
		after.Heading = fmt.Sprintf("After the death of %s: no tree is left, and the hosts reduce among themselves", r.graph.Name(r.killed))
		if t := r.trees[len(r.trees)-1]; len(r.trees) > 1 {
			after.Tree = t.tree
			after.Heading = fmt.Sprintf("After the death of %s: the tree of epoch %d", r.graph.Name(r.killed), t.epoch)
		}
		scenes = append(scenes, after)
	}
	return picture.SVG(w, fmt.Sprintf("Fabric %s and the collection tree of group %q", r.Fabric, group), scenes...)
}
