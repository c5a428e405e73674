package collective

import (
	"slices"

	"github.com/tributary-fabric/tributary/internal/wire/collect"
)

// down takes the news that a node is dead: its trees are freed, nobody waits
// for it, and nothing is replied to a broadcast of its own.
func (c *Core) down(node collect.Node) {
	if node == c.cfg.Node {
		return
	}
	if _, known := c.dead[node]; known {
		return
	}
	c.dead[node] = struct{}{}
	const all = ^uint64(0)
	c.bereave(node, all, collect.Dead)
}

// up takes the news that a node lives in an incarnation: what an earlier one
// has left is freed.
func (c *Core) up(node collect.Node, incarnation uint64) {
	before, known := c.incarnations[node]
	if node == c.cfg.Node || known && incarnation < before {
		return
	}
	delete(c.dead, node)
	c.incarnations[node] = incarnation
	status := collect.OK
	if known && incarnation > before {
		status = collect.Rebooted
	}
	c.bereave(node, incarnation, status)
}

// bereave frees what the node was the root of before an incarnation and, where
// status tells why, ends the wait for its replies.
func (c *Core) bereave(node collect.Node, before uint64, status collect.Status) {
	for _, g := range c.groups {
		if r := g.routes[node]; r != nil && r.incarnation < before {
			delete(g.routes, node)
		}
		orphan := g.members != nil && g.creator == node && g.incarnation < before
		forgotten := g.key.outOfBand && !g.mine && len(g.routes) == 0
		if orphan || forgotten {
			c.freeGroup(g)
		}
	}
	for _, id := range c.concerned(node, before, status) {
		r := c.requests[id]
		if r == nil {
			continue // the end of another was its end, too
		}
		if !r.root && r.key.Root == node && r.key.Incarnation < before {
			r.silent = true
			c.stop(r, collect.RootDied)
		} else if i := r.route.child(node); i >= 0 && r.children[i].state == waiting {
			c.settle(r, i, verdict{status: status})
			c.advance(r)
		}
	}
}

// concerned returns the requests that a node is the root of, or a child, in
// their order.
func (c *Core) concerned(node collect.Node, before uint64, status collect.Status) []uint64 {
	var ids []uint64
	for id, r := range c.requests {
		orphan := !r.root && r.key.Root == node && r.key.Incarnation < before
		if orphan || status != collect.OK && r.phase == running && r.route.child(node) >= 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
