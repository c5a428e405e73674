package broadcast

import (
	"slices"

	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// down takes the news that a node's life is over, 0 being whichever is known: its
// trees are freed, nobody waits for it, and nothing is replied to a broadcast of
// its own. Where a later life is known, up has done all of that.
func (c *Core) down(node broadcastmsg.Node, incarnation uint64) {
	after := incarnation + 1
	if incarnation == 0 {
		after = ^uint64(0)
	}
	if node == c.cfg.Node || after <= max(c.dead[node], c.incarnations[node]) {
		return
	}
	c.dead[node] = after
	c.incarnations[node] = max(c.incarnations[node], incarnation)
	c.unanswered(node, "its root is dead")
	c.onPeerLost(node, after, broadcastmsg.Dead)
}

// up takes the news that a node lives in an incarnation: what an earlier one
// has left is freed.
func (c *Core) up(node broadcastmsg.Node, incarnation uint64) {
	before, known := c.incarnations[node]
	if node == c.cfg.Node || known && incarnation < before {
		return
	}
	delete(c.dead, node)
	c.incarnations[node] = incarnation
	status := broadcastmsg.OK
	if known && incarnation > before {
		status = broadcastmsg.Rebooted
		delete(c.proofs.readers, node) // its secret was that of its earlier life
		if c.proves() {
			c.finished.end(life{node, before})
		}
	}
	c.onPeerLost(node, incarnation, status)
}

// Forget forgets a node that nothing connects to any more: what proves its requests, for
// which it is asked anew, and, unless isWatched says that its lives are reported, in which
// incarnation it was met: it may be in any. So what is kept of nodes is bounded by who calls.
func (c *Core) Forget(node broadcastmsg.Node, isWatched bool) {
	delete(c.proofs.readers, node)
	delete(c.proofs.roots, node)
	c.finished.release(node)
	if !isWatched {
		delete(c.incarnations, node)
	}
}

// mostDoublings is how often the pause doubles before a node is called again whose
// connections end again and again.
const mostDoublings = 6

// cut takes the news that a connection to a node has ended. What was sent on it may
// be lost, and the node with it: whoever waits for its reply finds out whether it
// can be reached, by a message without a byte. If it cannot be, no reply will come.
func (c *Core) cut(node broadcastmsg.Node) {
	c.askAgain(node)
	for _, id := range c.concerned(node, 0, broadcastmsg.Unsent) {
		r := c.requests[id]
		i := r.route.child(node)
		switch k := &r.children[i]; {
		case k.state != waiting:
		case k.called:
			k.cut = true // on which connection that goes is not known yet
		default:
			c.recall(r, i)
		}
	}
}

// absent takes the news that a node does not take part: nobody waits for its replies.
func (c *Core) absent(node broadcastmsg.Node) {
	c.unanswered(node, "its host has no server collectives")
	for _, id := range c.concerned(node, 0, broadcastmsg.NoService) {
		if r := c.requests[id]; r != nil {
			if i := r.route.child(node); r.children[i].state == waiting {
				c.settle(r, i, verdict{status: broadcastmsg.NoService, reason: "its host has no server collectives"})
				c.advance(r)
			}
		}
	}
}

// recall calls a child again, after a while.
func (c *Core) recall(r *request, i int) {
	k := &r.children[i]
	k.called, k.cut = true, false
	c.rest(c.outbound(r.route.children[i].Node, c.pool.get(0), r.id, i), c.cfg.RecallAfter<<min(k.cuts, mostDoublings))
	k.cuts++
}

// onPeerLost frees what the node was the root of before an incarnation and, where
// status reports why, ends the wait for its replies.
func (c *Core) onPeerLost(node broadcastmsg.Node, before uint64, status broadcastmsg.Status) {
	for _, g := range c.groups {
		if p := g.roots[node]; p == nil || p.incarnation >= before {
			continue
		}
		delete(g.roots, node)
		if len(g.roots) == 0 && !(g.key.outOfBand && g.mine) {
			c.freeGroup(g) // it goes with its last tree
		}
	}
	for _, id := range c.concerned(node, before, status) {
		r := c.requests[id]
		if r == nil {
			continue // the end of another was its end, too
		}
		if !r.root && r.key.Root == node && r.key.Incarnation < before {
			r.silent = true
			c.stop(r, broadcastmsg.RootDied)
		} else if i := r.route.child(node); i >= 0 && r.children[i].state == waiting {
			c.settle(r, i, verdict{status: status})
			c.advance(r)
		}
	}
}

// concerned returns the requests that a node is the root of, or a child, in
// their order.
func (c *Core) concerned(node broadcastmsg.Node, before uint64, status broadcastmsg.Status) []uint64 {
	var ids []uint64
	for id, r := range c.requests {
		orphan := !r.root && r.key.Root == node && r.key.Incarnation < before
		if orphan || status != broadcastmsg.OK && r.phase == running && r.route.child(node) >= 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
