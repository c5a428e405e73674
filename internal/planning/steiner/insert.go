package steiner

import (
	"cmp"
	"slices"
)

// insertAll tries for every node beside the tree to take it on: it is joined to
// each of its neighbours on the tree, and of every circle that closes the
// dearest key path goes.
func (l *local) insertAll() (better bool) {
	for _, v := range l.beside() {
		if l.t.on(v) {
			continue
		}
		if l.g.meter.spent() {
			break
		}
		better = l.insert(v) || better
	}
	return better
}

// beside returns the nodes off the tree that have two neighbours on it.
func (l *local) beside() []int32 {
	l.nodes = l.nodes[:0]
	for _, v := range l.t.nodes {
		if l.g.meter.spent() {
			break
		}
		arcs := l.g.at(v)
		l.g.meter.add(len(arcs))
		for _, a := range arcs {
			if w := a.to; !l.t.on(w) && l.covers(w) && l.g.passable(w) {
				if l.count[w]++; l.count[w] == 2 {
					l.nodes = append(l.nodes, w)
				}
			}
		}
	}
	for _, v := range l.t.nodes {
		for _, a := range l.g.at(v) {
			l.count[a.to] = 0
		}
	}
	slices.Sort(l.nodes)
	return l.nodes
}

// insert tries to take v, which is off the tree, on. It reports whether that
// saved enough; if not, it changes nothing.
func (l *local) insert(v int32) bool {
	t := l.t
	l.near = l.near[:0]
	for _, a := range l.g.at(v) {
		if t.on(a.to) && t.degree[a.to] < l.g.limit[a.to] {
			l.near = append(l.near, a)
		}
	}
	l.g.meter.add(len(l.g.at(v)))
	if len(l.near) < 2 {
		return false
	}
	slices.SortFunc(l.near, func(a, b arc) int {
		return cmp.Or(cmp.Compare(l.cost[a.edge], l.cost[b.edge]), cmp.Compare(a.to, b.to))
	})
	t.record()
	t.add(v)
	t.link(v, l.near[0].to, l.near[0].edge)
	gain := -l.cost[l.near[0].edge]
	for _, a := range l.near[1:] {
		// A neighbour may have gone with the key path of an earlier one.
		if t.on(a.to) && t.degree[v] < l.g.limit[v] && !l.g.meter.spent() {
			gain += l.close(v, a)
		}
	}
	if gain > l.least && t.degree[v] >= 2 {
		l.gain = gain
		t.keep()
		return true
	}
	t.undo()
	return false
}

// segment is a key path, or the part of one up to the circle's closing edge:
// from low up to high.
type segment struct {
	cost      float64
	low, high int32
}

// close adds the edge a of v and takes away the dearest key path of the circle,
// if that saves anything. It returns what it saves.
func (l *local) close(v int32, a arc) (gain float64) {
	t := l.t
	from, to := a.to, v
	var worst segment
	if l.rng != nil && t.degree[a.to] == 1 && a.to != t.root {
		worst = segment{cost: l.cost[t.up[a.to]], low: a.to, high: t.parent[a.to]}
		for worst.high != v && !t.key(worst.high) {
			worst.cost += l.cost[t.up[worst.high]]
			worst.high = t.parent[worst.high]
		}
	} else {
		meet := l.meet(v, a.to)
		worst = l.dearest(a.to, meet)
		if here := l.dearest(v, meet); here.cost >= worst.cost {
			from, to, worst = v, a.to, here
		}
	}
	gain = worst.cost - l.cost[a.edge]
	if gain < 0 || gain == 0 && l.rng == nil || l.rng == nil && gain <= l.least {
		return 0
	}
	for x := worst.low; ; { // its inner nodes go
		up := t.parent[x]
		t.cut(x)
		if x != worst.low {
			t.remove(x)
		}
		if up == worst.high {
			break
		}
		x = up
	}
	t.evert(from)
	t.link(from, to, a.edge)
	return gain
}

// meet returns the lowest node that is above or equal to both u and v. It climbs
// from both in turns, so that what is far above them does not matter.
func (l *local) meet(u, v int32) int32 {
	l.climb++
	steps := 0
	for ; ; u, v = v, u {
		if u < 0 {
			continue
		}
		if l.climbed[u] == l.climb {
			break
		}
		l.climbed[u] = l.climb
		u = l.t.parent[u]
		steps++
	}
	l.g.meter.add(steps)
	return u
}

// dearest returns the dearest segment between v and top, which is above it; one of
// less than no cost if they are the same. Segments may cost nothing.
func (l *local) dearest(v, top int32) segment {
	t := l.t
	worst := segment{cost: -1}
	now := segment{low: v}
	for x := v; x != top; {
		now.cost += l.cost[t.up[x]]
		x = t.parent[x]
		if x == top || t.key(x) {
			now.high = x
			if now.cost > worst.cost {
				worst = now
			}
			now = segment{low: x}
		}
	}
	return worst
}
