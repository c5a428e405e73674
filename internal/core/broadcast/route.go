package broadcast

import (
	"errors"
	"fmt"

	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
	"github.com/tributary-fabric/tributary/ranktree"
)

// ErrTree reports that there is no such tree: an unknown kind, or a radix that
// the kind does not have.
var ErrTree = errors.New("scoll: no such tree")

// Shape makes the tree of a kind over the ranks of the members, with the member
// of rank root for its root. All members must come to the same tree. To add a
// kind of tree is to write one, and the methods of tree.Spanning.
type Shape func(m *Members, root, radix int) (ranktree.Spanning, error)

func kNomial(m *Members, root, radix int) (ranktree.Spanning, error) {
	if radix < 2 {
		return nil, fmt.Errorf("%w: k-nomial of radix %d, want 2 or more", ErrTree, radix)
	}
	return ranktree.Rotate(ranktree.KNomial(m.Len(), radix), root), nil
}

func kAry(m *Members, root, radix int) (ranktree.Spanning, error) {
	if radix < 1 {
		return nil, fmt.Errorf("%w: k-ary of arity %d, want 1 or more", ErrTree, radix)
	}
	return ranktree.Rotate(ranktree.CompleteKAry(m.Len(), radix), root), nil
}

func flat(m *Members, root, radix int) (ranktree.Spanning, error) {
	if radix != 0 {
		return nil, fmt.Errorf("%w: flat of radix %d, want 0", ErrTree, radix)
	}
	return ranktree.Rotate(ranktree.CompleteKAry(m.Len(), max(1, m.Len()-1)), root), nil
}

// Branch is a child of a node in a tree, with what is beneath it, the child
// itself included.
type Branch struct {
	Node     broadcastmsg.Node
	Nodes    int
	Entities int
	Reach    int // edges from the child to the deepest leaf beneath it
}

// route is a node's place in the tree of a group and a root. Its size is that
// of its children, not of the group, and it is computed once.
type route struct {
	tree     broadcastmsg.Tree
	digest   broadcastmsg.Digest // of the group's members
	parent   broadcastmsg.Node
	nodes    int // beneath this node, itself included
	reach    int // edges to the deepest leaf beneath this node
	tags     []broadcastmsg.Tag
	children []Branch                  // in the order in which they are served
	index    map[broadcastmsg.Node]int // of children, where they are many
	deep     []broadcastmsg.Node       // at the root: all others, if they are few enough for a tag each
}

// manyChildren is from when on children are found by a map.
const manyChildren = 16

func (t *route) child(node broadcastmsg.Node) int {
	if t.index != nil {
		if i, ok := t.index[node]; ok {
			return i
		}
		return -1
	}
	for i := range t.children {
		if t.children[i].Node == node {
			return i
		}
	}
	return -1
}

// newRoute returns self's place in the tree over m, those members of a group of a
// digest that take part, or which status a request on it has.
func newRoute(m *Members, digest broadcastmsg.Digest, shape Shape, kind broadcastmsg.Tree, root, self broadcastmsg.Node) (*route, broadcastmsg.Status) {
	top, me := m.Rank(root), m.Rank(self)
	switch {
	case top < 0 || me < 0:
		return nil, broadcastmsg.NotMember
	case shape == nil:
		return nil, broadcastmsg.NoTree
	}
	span, err := shape(m, top, int(kind.Radix))
	if err != nil {
		return nil, broadcastmsg.NoTree
	}
	r := &route{
		tree: kind, digest: digest, nodes: span.Count(me), reach: span.Reach(me),
		tags: m.Target(me).Tags,
	}
	if parent, ok := span.Parent(me); ok {
		r.parent = m.Target(parent).Node
	}
	for _, rank := range ranktree.AppendDeepestFirst(nil, span, me) {
		r.children = append(r.children, Branch{
			Node: m.Target(rank).Node, Nodes: span.Count(rank), Entities: entities(m, span, rank), Reach: span.Reach(rank),
		})
	}
	if len(r.children) > manyChildren {
		r.index = make(map[broadcastmsg.Node]int, len(r.children))
		for i := range r.children {
			r.index[r.children[i].Node] = i
		}
	}
	if root == self && r.reach > 1 && m.Len()-1-len(r.children) <= broadcastmsg.MostTags {
		for rank := range m.Len() {
			if node := m.Target(rank).Node; node != self && r.child(node) < 0 {
				r.deep = append(r.deep, node)
			}
		}
	}
	return r, broadcastmsg.OK
}

// entities counts those beneath rank.
func entities(m *Members, span ranktree.Spanning, rank int) int {
	if m.tags >= 0 {
		return m.tags * span.Count(rank)
	}
	all := 0
	for stack := []int{rank}; len(stack) > 0; {
		r := stack[len(stack)-1]
		all += len(m.Target(r).Tags)
		stack = span.AppendChildren(stack[:len(stack)-1], r)
	}
	return all
}
