package discovery

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
)

// edge is a link that may be: two ports of which at least one hears the other.
type edge struct {
	a, b   *port
	ab, ba *claim // nil: it does not
}

// match decides which links there are, among the ports that depend on those in
// rematch.
func (c *Core) match() {
	seen := map[*port]bool{}
	for _, p := range slices.SortedFunc(maps.Keys(c.rematch), comparePorts) {
		if !seen[p] {
			c.matchGroup(group(p, seen))
		}
	}
	clear(c.rematch)
}

// comparePorts orders ports by their names, compareNodes nodes.
func comparePorts(p, q *port) int {
	return cmp.Or(compareNodes(p.node, q.node), cmp.Compare(p.name, q.name))
}

func compareNodes(n, m *node) int {
	return cmp.Or(cmp.Compare(n.name, m.name), cmp.Compare(n.claimed, m.claimed), n.chassis.compare(m.chassis), cmp.Compare(n.system.name, m.system.name))
}

// group returns all ports that are joined to p by claims.
func group(p *port, seen map[*port]bool) []*port {
	all := []*port{p}
	seen[p] = true
	join := func(q *port) {
		if q != nil && !seen[q] {
			seen[q] = true
			all = append(all, q)
		}
	}
	for i := 0; i < len(all); i++ {
		q := all[i]
		for _, k := range q.hears {
			join(k.to)
		}
		for _, k := range q.heard {
			join(k.from)
		}
		join(q.peer)
	}
	return all
}

func (c *Core) matchGroup(all []*port) {
	latest := all[0]
	for _, p := range all {
		if c.pending.fresh[p] && p.turn > latest.turn {
			latest = p
		}
	}
	c.blame(latest)
	was := make([]*port, len(all))
	for i, p := range all {
		was[i], p.peer = p.peer, nil
	}
	edges := edgesOf(all)
	slices.SortFunc(edges, func(x, y edge) int { return x.compare(&y) })
	for _, e := range edges {
		if e.a.peer == nil && e.b.peer == nil {
			e.a.peer, e.b.peer = e.b, e.a
		}
	}
	for i, p := range all {
		if p.peer != was[i] {
			c.follow(p)
			if was[i] != nil {
				c.follow(was[i])
			}
		}
		c.judge(p)
	}
}

// edgesOf returns the links that may be among ports: both ends agree, or one speaks
// for an end that does not speak.
func edgesOf(all []*port) (edges []edge) {
	done := map[[2]*port]bool{}
	for _, p := range all {
		for _, k := range p.hears {
			q := k.to
			if q == nil {
				if m := answer(p, k.node); m != nil {
					q = m.from
				}
			}
			if q == nil || p.node == q.node || p.node.name == "" || q.node.name == "" || done[[2]*port{p, q}] {
				continue
			}
			done[[2]*port{p, q}], done[[2]*port{q, p}] = true, true
			e := edge{a: p, b: q, ab: claimOf(p, q), ba: claimOf(q, p)}
			if e.ab == nil && e.a.node.isSilent() || e.ba == nil && e.b.node.isSilent() || e.ab != nil && e.ba != nil {
				edges = append(edges, e)
			}
		}
	}
	return edges
}

// answer returns a claim of n's that means p.
func answer(p *port, n *node) *claim {
	for _, m := range p.heard {
		if n != nil && m.from.node == n {
			return m
		}
	}
	return nil
}

// claimOf returns p's claim that means q, or that means q's node without a port.
func claimOf(p, q *port) *claim {
	for _, k := range p.hears {
		if k.to == q || k.to == nil && k.node == q.node {
			return k
		}
	}
	return nil
}

// isSilent reports whether n cannot say itself whom it hears.
func (n *node) isSilent() bool { return n.target == nil || !n.speaks }

// live returns how many of the ends hear the other now, and the first of them that does.
func (e *edge) live() (n int, since core.Time) {
	since = core.Never
	for _, k := range []*claim{e.ab, e.ba} {
		if k != nil && k.isLive() {
			n++
			since = min(since, k.since)
		}
	}
	return n, since
}

// until returns when an end last heard the other.
func (e *edge) until() (at core.Time) {
	for _, k := range []*claim{e.ab, e.ba} {
		if k != nil {
			at = max(at, k.until)
		}
	}
	return at
}

// compare orders edges by which is a link if only one can be: what is heard now before
// what was, by both ends before by one; then of the former what was heard first, of the
// latter what was heard last.
func (e *edge) compare(f *edge) int {
	n, since := e.live()
	m, other := f.live()
	return cmp.Or(cmp.Compare(m, n), cmp.Compare(since, other), cmp.Compare(f.until(), e.until()), compareLeast(e, f))
}

func compareLeast(e, f *edge) int {
	x, y := e.least(), f.least()
	return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]), cmp.Compare(x[2], y[2]), cmp.Compare(x[3], y[3]))
}

// least returns the names of e's ends, the lesser end first.
func (e *edge) least() [4]string {
	a, b := e.a, e.b
	if cmp.Or(cmp.Compare(a.node.name, b.node.name), cmp.Compare(a.name, b.name)) > 0 {
		a, b = b, a
	}
	return [4]string{a.node.name, a.name, b.node.name, b.name}
}
