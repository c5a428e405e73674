package broadcast

import (
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// places are a node's in the trees of a group from one root: in that over all
// members, and in that of the root's last filter.
type places struct {
	incarnation uint64 // of the root
	whole, part *route // nil: none
	filter      string // of part
}

// root notes that a node is a root of g in an incarnation.
func (g *group) root(node broadcastmsg.Node, incarnation uint64) *places {
	p := g.roots[node]
	if p == nil {
		p = &places{}
		g.roots[node] = p
	}
	p.incarnation = incarnation
	return p
}

// known returns this node's place in a tree if it is at hand.
func (p *places) known(kind broadcastmsg.Tree, digest broadcastmsg.Digest, s broadcastmsg.Subset, f broadcastmsg.Filter) *route {
	if p == nil {
		return nil
	}
	var t *route
	switch {
	case s == broadcastmsg.Everybody:
		t = p.whole
	case s == broadcastmsg.Filtered && string(f) == p.filter:
		t = p.part
	}
	if t == nil || t.digest != digest || t.tree != kind {
		return nil
	}
	return t
}

// keep notes this node's place in a tree. One among those who live now is not
// worth it.
func (p *places) keep(t *route, s broadcastmsg.Subset, f broadcastmsg.Filter) {
	switch s {
	case broadcastmsg.Everybody:
		p.whole = t
	case broadcastmsg.Filtered:
		if p.part != t {
			p.part, p.filter = t, string(f)
		}
	}
}

// count returns how many places there are.
func (p *places) count() int {
	n := 0
	for _, t := range []*route{p.whole, p.part} {
		if t != nil {
			n++
		}
	}
	return n
}

// subsetOf returns the subset of a filter, nil for none, and of the living.
func subsetOf(f broadcastmsg.Filter, alive bool) broadcastmsg.Subset {
	s := broadcastmsg.Everybody
	if f != nil {
		s |= broadcastmsg.Filtered
	}
	if alive {
		s |= broadcastmsg.Alive
	}
	return s
}

// narrow returns those of a group's members that are in the tree of a root over a
// subset: who is chosen, and the root.
func (c *Core) narrow(m *Members, root broadcastmsg.Node, s broadcastmsg.Subset, f broadcastmsg.Filter) (*Members, broadcastmsg.Status) {
	top := m.Rank(root)
	if top < 0 {
		return nil, broadcastmsg.NotMember
	}
	dead := c.deadOf(m, nil)
	if s == broadcastmsg.Everybody || s == broadcastmsg.Alive && len(dead) == 0 {
		return m, broadcastmsg.OK
	}
	in := slices.Repeat([]bool{s&broadcastmsg.Filtered == 0}, m.Len())
	if s&broadcastmsg.Filtered != 0 {
		ranges, ok := f.Chosen(m.Len())
		if !ok {
			return nil, broadcastmsg.Disagree
		}
		for from, to := range ranges {
			for rank := from; rank < to; rank++ {
				in[rank] = true
			}
		}
	}
	if s&broadcastmsg.Alive != 0 {
		for _, node := range dead {
			in[m.Rank(node)] = false
		}
	}
	in[top] = true
	return m.pick(in), broadcastmsg.OK
}

// ownPlace returns this node's place in the tree from itself over a subset of a
// group's members, and, of the living, who they are.
func (c *Core) ownPlace(g *group, kind broadcastmsg.Tree, m *Members, s broadcastmsg.Subset, f broadcastmsg.Filter) (*route, *Members, error) {
	if t := g.roots[c.cfg.Node].known(kind, m.digest, s, f); t != nil {
		return t, m, nil
	}
	all, status := c.narrow(m, c.cfg.Node, s, f)
	var t *route
	if status == broadcastmsg.OK {
		t, status = newRoute(all, m.digest, c.shapes[kind.Kind], kind, c.cfg.Node, c.cfg.Node)
	}
	switch status {
	case broadcastmsg.OK:
		g.root(c.cfg.Node, c.cfg.Incarnation).keep(t, s, f)
		return t, all, nil
	case broadcastmsg.NotMember:
		return nil, nil, ErrNotMember
	default:
		return nil, nil, fmt.Errorf("%w: kind %d of radix %d", ErrTree, kind.Kind, kind.Radix)
	}
}

// filterOf returns the filter of those members that a broadcast is for, nil if it
// is for all, and whether self is among them.
func filterOf(m *Members, b *Broadcast, self broadcastmsg.Node) (f broadcastmsg.Filter, me bool, err error) {
	if b.Only == nil && len(b.Except) == 0 {
		return nil, true, nil
	}
	in := slices.Repeat([]bool{b.Only == nil}, m.Len())
	for i, nodes := range [][]broadcastmsg.Node{b.Only, b.Except} {
		for _, node := range nodes {
			rank := m.Rank(node)
			if rank < 0 {
				return nil, false, fmt.Errorf("%w: %q is no member", ErrFilter, node)
			}
			in[rank] = i == 0
		}
	}
	chosen := 0
	for _, yes := range in {
		if yes {
			chosen++
		}
	}
	switch chosen {
	case 0:
		return nil, false, fmt.Errorf("%w: nobody is left", ErrFilter)
	case len(in):
		return nil, true, nil
	}
	rank := m.Rank(self)
	return broadcastmsg.MakeFilter(len(in), func(rank int) bool { return in[rank] }), rank >= 0 && in[rank], nil
}

// deadOf returns the dead among members, of those that a filter chooses if there
// is one.
func (c *Core) deadOf(m *Members, f broadcastmsg.Filter) (dead []broadcastmsg.Node) {
	for node := range c.dead {
		if rank := m.Rank(node); rank >= 0 && (f == nil || f.Has(m.Len(), rank)) {
			dead = append(dead, node)
		}
	}
	return dead
}
