package scoll

import (
	"github.com/tributary-fabric/tributary/internal/core/broadcast"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
	"github.com/tributary-fabric/tributary/ranktree"
)

// Tree is a kind of spanning tree and its radix. The zero Tree stands for the
// node's default, Config.Tree.
type Tree struct {
	Kind  uint8 // FirstOwnKind and above: of Config.Trees
	Radix int   // 0 where the kind has none
}

// FirstOwnKind is the first kind of tree that is not the library's.
const FirstOwnKind = uint8(broadcastmsg.FirstOwnKind)

// Binomial returns the binomial tree, which suits short messages where sending
// takes about as long as travelling.
func Binomial() Tree { return KNomial(2) }

// KNomial returns the k-nomial tree, k of 2 or more: flatter than a binomial
// one, which is better where travelling takes longer than sending.
func KNomial(k int) Tree { return Tree{uint8(broadcastmsg.KNomial), k} }

// KAry returns the complete k-ary tree, k of 1 or more, filled level by level:
// no node has more than k children.
func KAry(k int) Tree { return Tree{uint8(broadcastmsg.KAry), k} }

// Flat returns the tree in which everybody is the root's child.
func Flat() Tree { return Tree{uint8(broadcastmsg.Flat), 0} }

// Shape makes the tree of a kind over the members, numbered from 0 in their
// order, with member root for its root. All nodes must come to the same tree. To
// add a kind of tree is to write one, with the methods of tree.Spanning, and to
// give it to every node by Config.Trees.
type Shape func(members *Members, root, radix int) (ranktree.Spanning, error)

func (t Tree) core() broadcastmsg.Tree {
	return broadcastmsg.Tree{Kind: broadcastmsg.Kind(t.Kind), Radix: uint16(t.Radix)}
}

func coreShapes(trees map[uint8]Shape) map[broadcastmsg.Kind]broadcast.Shape {
	all := map[broadcastmsg.Kind]broadcast.Shape{}
	for kind, shape := range trees {
		all[broadcastmsg.Kind(kind)] = func(m *broadcast.Members, root, radix int) (ranktree.Spanning, error) {
			return shape(&Members{m}, root, radix)
		}
	}
	return all
}

// Child is a child of a node in a tree, with what is beneath it, the child
// itself included.
type Child struct {
	Node     string
	Nodes    int // in its subtree
	Entities int // in its subtree
	Depth    int // edges from the child to the deepest leaf beneath it
}

func publicChild(b *broadcast.Branch) Child {
	return Child{string(b.Node), b.Nodes, b.Entities, b.Reach}
}

func publicChildren(branches []broadcast.Branch) []Child {
	all := make([]Child, len(branches))
	for i := range branches {
		all[i] = publicChild(&branches[i])
	}
	return all
}
