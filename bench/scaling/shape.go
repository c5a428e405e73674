package scaling

import (
	"fmt"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// Shape is a collection tree in which all switches of a level have as many children: of a
// leaf Shape[0] hosts, of one above it Shape[1] leaves, and so on to the root.
type Shape []int

// Hosts returns the members.
func (s Shape) Hosts() int {
	n := 1
	for _, children := range s {
		n *= children
	}
	return n
}

// Validate reports what is wrong with s.
func (s Shape) Validate() error {
	if len(s) == 0 || len(s) > 8 {
		return fmt.Errorf("%w: a tree of %d levels", ErrModel, len(s))
	}
	for _, children := range s {
		if children < 1 || children > 1<<16 {
			return fmt.Errorf("%w: a switch with %d children", ErrModel, children)
		}
	}
	return nil
}

// levels returns how many switches are between two hosts: one in a leaf, three over the
// level above, and so on.
func (s Shape) between(a, b int) int {
	for level, children := range s {
		if a, b = a/children, b/children; a == b {
			return 2*level + 1
		}
	}
	return 2*len(s) - 1
}

// Planned returns the tree that the planner chooses for the first hosts of a fat-tree of
// switches with k ports. It is an error if that is no Shape.
func Planned(k, hosts int) (Shape, error) {
	e := topology.DefaultEquipment()
	e.Switch.Children, e.Switch.Slots = max(k, topology.DefaultChildren), 1<<24
	g, err := e.FatTree(k)
	if err != nil {
		return nil, fmt.Errorf("fat-tree: %w", err)
	}
	all := g.AllHosts()
	if hosts < 1 || hosts > len(all) {
		return nil, fmt.Errorf("%w: %d hosts of %d", ErrModel, hosts, len(all))
	}
	p, err := pathsel.NewPlanner(g, pathsel.Config{})
	if err != nil {
		return nil, fmt.Errorf("planner: %w", err)
	}
	plan, err := p.Plan(g.View(), nil, pathsel.Request{
		Members: all[:hosts], Functions: topology.FunctionsOf(reduce.Sum), Types: topology.TypesOf(reduce.Float32), Slots: 2048, ChunkBytes: 1432,
	})
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	return shapeOf(plan.Tree)
}

// shapeOf returns the shape of a tree, if it has one.
func shapeOf(t pathsel.Tree) (Shape, error) {
	depth := make([]int, len(t.Vertices))
	deepest := 0
	for i, v := range t.Vertices {
		if i > 0 {
			depth[i] = depth[v.Parent] + 1
		}
		deepest = max(deepest, depth[i])
	}
	s := make(Shape, deepest+1)
	for i, children := range t.AllChildren() {
		level := deepest - depth[i]
		if s[level] != 0 && s[level] != len(children) {
			return nil, fmt.Errorf("%w: switches of level %d have %d and %d children", ErrModel, level, s[level], len(children))
		}
		s[level] = len(children)
		for _, c := range children {
			if (c.Vertex < 0) != (level == 0) {
				return nil, fmt.Errorf("%w: hosts at different depths", ErrModel)
			}
		}
	}
	return s, s.Validate()
}
