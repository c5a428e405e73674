package broadcast

import (
	"fmt"

	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// quotas bound what other nodes have this one keep. A host counts with all its processes,
// of which it can start as many as it likes.
type quotas struct {
	all      int            // requests of others
	requests map[string]int // the same, by their roots' hosts
	groups   map[string]int // by the hosts of the roots whose requests have made them
	members  map[string]int // bytes of the members of these
	pulled   uint64         // bytes of members that are being pulled
	pulledBy map[string]int // the same, by the hosts of who announces them
}

func newQuotas() quotas {
	return quotas{requests: map[string]int{}, groups: map[string]int{}, members: map[string]int{}, pulledBy: map[string]int{}}
}

func hostOf(node broadcastmsg.Node) string { return peering.HostOf(string(node)) }

func (q *quotas) begin(root broadcastmsg.Node) {
	q.all++
	q.requests[hostOf(root)]++
}

func (q *quotas) end(root broadcastmsg.Node) {
	q.all--
	less(q.requests, root, 1)
}

// keep counts a group that is in the table, and free that it is not any more.
func (q *quotas) keep(g *group) {
	q.groups[hostOf(g.by)]++
	q.members[hostOf(g.by)] += g.bytes
}

func (q *quotas) free(g *group) {
	less(q.groups, g.by, 1)
	less(q.members, g.by, g.bytes)
}

func (q *quotas) pull(r *request) {
	q.pulled += r.bulk
	q.pulledBy[hostOf(r.key.Root)] += int(r.bulk)
}

func (q *quotas) pulledAll(r *request) {
	q.pulled -= r.bulk
	less(q.pulledBy, r.key.Root, int(r.bulk))
}

// less counts n less for the host of a node.
func less(of map[string]int, node broadcastmsg.Node, n int) {
	host := hostOf(node)
	if of[host] -= n; of[host] <= 0 {
		delete(of, host)
	}
}

// crowded returns why no more requests of a root are taken; one host leaves room for
// others.
func (c *Core) crowded(root broadcastmsg.Node) string {
	host := hostOf(root)
	switch n := c.quotas.requests[host]; {
	case n >= c.cfg.Requests/4:
		return fmt.Sprintf("%d requests of host %s have not ended here", n, host)
	case c.quotas.all >= c.cfg.Requests:
		return fmt.Sprintf("%d requests have not ended here", c.quotas.all)
	}
	return ""
}

// fullOf returns why a request makes no group: its root's host has made too many.
func (c *Core) fullOf(r *request) string {
	if c.groups[r.group.key] != nil || r.last && !r.group.key.outOfBand {
		return ""
	}
	host := hostOf(r.key.Root)
	switch n, bytes := c.quotas.groups[host], c.quotas.members[host]; {
	case n >= c.cfg.Groups:
		return fmt.Sprintf("host %s has made %d groups here", host, n)
	case uint64(bytes+r.group.bytes) > membersKept*c.cfg.CreationBytes:
		return fmt.Sprintf("the groups that host %s has made here have %d bytes of members, and MembersBytes is %d", host, bytes, c.cfg.CreationBytes)
	}
	return ""
}

// pullsAtOnce bounds the memory for members that are being pulled, in creations of the
// largest size; one host has one of them.
const pullsAtOnce = 4

// membersKept bounds the members of the groups that the roots of one host have made, in
// creations of the largest size.
const membersKept = 4

// whyNotPull returns why no memory is taken for the members that r announces, before any
// of them are here.
func (c *Core) whyNotPull(r *request) string {
	host := hostOf(r.key.Root)
	switch most, by := c.cfg.CreationBytes, uint64(c.quotas.pulledBy[host]); {
	case !r.last && !r.group.key.index.MadeBy(r.key.Root, r.key.Incarnation):
		return notItsIndex
	case r.bulk > most:
		return fmt.Sprintf("%d bytes of members, at most %d are taken", r.bulk, most)
	case by+r.bulk > most:
		return fmt.Sprintf("%d bytes of members are being pulled already for host %s", by, host)
	case c.quotas.pulled+r.bulk > pullsAtOnce*most:
		return fmt.Sprintf("%d bytes of members are being pulled already", c.quotas.pulled)
	}
	return ""
}
