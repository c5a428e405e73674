package broadcast

import (
	"fmt"

	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// quotas bound what other nodes have this one keep.
type quotas struct {
	all      int                       // requests of others
	requests map[broadcastmsg.Node]int // the same, by their roots
	groups   map[broadcastmsg.Node]int // by the roots whose requests have made them
}

func (q *quotas) begin(root broadcastmsg.Node) {
	q.all++
	q.requests[root]++
}

func (q *quotas) end(root broadcastmsg.Node) {
	q.all--
	less(q.requests, root)
}

// less counts one less.
func less(of map[broadcastmsg.Node]int, node broadcastmsg.Node) {
	if of[node]--; of[node] <= 0 {
		delete(of, node)
	}
}

// crowded returns why no more requests of a root are taken; one root leaves room for
// others.
func (c *Core) crowded(root broadcastmsg.Node) string {
	switch n := c.quotas.requests[root]; {
	case n >= c.cfg.Requests/4:
		return fmt.Sprintf("%d requests of %s have not ended here", n, root)
	case c.quotas.all >= c.cfg.Requests:
		return fmt.Sprintf("%d requests have not ended here", c.quotas.all)
	}
	return ""
}

// fullOf returns why a request makes no group: its root has made too many.
func (c *Core) fullOf(r *request) string {
	if n := c.quotas.groups[r.key.Root]; n >= c.cfg.Groups && c.groups[r.group.key] == nil && (!r.last || r.group.key.outOfBand) {
		return fmt.Sprintf("%s has made %d groups here", r.key.Root, n)
	}
	return ""
}
