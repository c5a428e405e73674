package telemetry

import (
	"math/bits"
	"slices"

	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// leaf is a leaf that is there.
type leaf struct {
	name  string
	path  openconfig.Path
	of    *openconfig.Leaf
	part  Part
	value openconfig.Value
	at    int64 // when the value was read; of an event, when it came to be
	round uint64
	items []*item // of the streams that have subscribed to it
}

// node is an element of the tree of leaves.
type node struct {
	elem openconfig.Elem
	kids []*node
	by   map[string]*node // kids, by their element
	leaf *leaf            // nil: it has kids only
}

// cache has all leaves.
type cache struct {
	leaves map[string]*leaf
	of     [parts][]*leaf
	root   node
	round  uint64
}

// add puts a leaf into the tree; nil if it is not of this part.
func (c *cache) add(name string, p Part) *leaf {
	path, err := openconfig.ParsePath(name)
	if err != nil {
		return nil
	}
	of, known := openconfig.Find(path)
	if !known || PartOf(of) != p {
		return nil
	}
	l := &leaf{name: name, path: path, of: of, part: p}
	n := &c.root
	for i := range path {
		key := path[i : i+1].String()
		kid := n.by[key]
		if kid == nil {
			kid = &node{elem: path[i]}
			if n.by == nil {
				n.by = map[string]*node{}
			}
			n.by[key] = kid
			n.kids = append(n.kids, kid)
		}
		n = kid
	}
	n.leaf = l
	c.leaves[name] = l
	c.of[p] = append(c.of[p], l)
	return l
}

// remove takes a leaf out of the tree. It stays in its part's list.
func (c *cache) remove(l *leaf) {
	delete(c.leaves, l.name)
	way := []*node{&c.root}
	for i := range l.path {
		way = append(way, way[i].by[l.path[i:i+1].String()])
	}
	way[len(l.path)].leaf = nil
	for i := len(l.path); i > 0 && way[i].leaf == nil && len(way[i].kids) == 0; i-- {
		over := way[i-1]
		delete(over.by, l.path[i-1:i].String())
		over.kids = slices.DeleteFunc(over.kids, func(n *node) bool { return n == way[i] })
	}
}

// walk calls visit with every leaf that a path selects, once, always in the same order.
func (c *cache) walk(p openconfig.Path, visit func(*leaf)) {
	c.root.walk(p, first(p), visit)
}

// places are those in a path up to which it has selected the elements above a node: bit n
// stands for n elements. Several are possible behind AnyDepth.
type places uint64

func first(p openconfig.Path) places { return places(1).skip(p) }

// skip adds the places behind AnyDepth, which may stand for no element.
func (s places) skip(p openconfig.Path) places {
	for i := range p {
		if s>>i&1 != 0 && p[i].Name == openconfig.AnyDepth {
			s |= 1 << (i + 1)
		}
	}
	return s
}

// past returns the places behind an element.
func (s places) past(p openconfig.Path, e *openconfig.Elem) (after places) {
	for i := range p {
		switch {
		case s>>i&1 == 0:
		case p[i].Name == openconfig.AnyDepth:
			after |= 1 << i
		case p[i].Matches(e):
			after |= 1 << (i + 1)
		}
	}
	return after.skip(p)
}

func (n *node) walk(p openconfig.Path, at places, visit func(*leaf)) {
	if at>>len(p)&1 != 0 {
		n.all(visit)
		return
	}
	if i := bits.TrailingZeros64(uint64(at)); at == 1<<i && literal(&p[i]) {
		if kid := n.by[p[i:i+1].String()]; kid != nil { // an entry of a list has all keys: no other can be meant
			kid.walk(p, places(1<<(i+1)).skip(p), visit)
			return
		}
	}
	for _, kid := range n.kids {
		if after := at.past(p, &kid.elem); after != 0 {
			kid.walk(p, after, visit)
		}
	}
}

// literal reports whether an element has no wildcard.
func literal(e *openconfig.Elem) bool {
	return e.Name != openconfig.AnyElem && !slices.ContainsFunc(e.Keys, func(k openconfig.Key) bool { return k.Value == openconfig.AnyElem })
}

func (n *node) all(visit func(*leaf)) {
	if n.leaf != nil {
		visit(n.leaf)
	}
	for _, kid := range n.kids {
		kid.all(visit)
	}
}
