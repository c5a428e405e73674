package steiner

import "slices"

// hold is what insert may have to put back.
type hold struct{ node, parent, up, degree int32 }

// insertAll tries for every node off the tree to take it on: it is joined to
// each of its neighbours on the tree, and of every circle that closes the
// dearest key path goes.
func (l *local) insertAll() (better bool) {
	for v := range int32(l.g.nodes()) {
		if !l.covers(v) || l.t.on(v) || !l.g.passable(v) {
			continue
		}
		if l.g.meter.spent() {
			break
		}
		better = l.insert(v) || better
	}
	return better
}

// insert tries to take v, which is off the tree, on. It reports whether that
// made the tree cheaper; if not, it changes nothing.
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
		switch ca, cb := l.cost[a.edge], l.cost[b.edge]; {
		case ca < cb:
			return -1
		case ca > cb:
			return 1
		}
		return int(a.to - b.to)
	})
	l.journal = l.journal[:0]
	l.hang(v, l.near[0].to, l.near[0].edge)
	gain := -l.cost[l.near[0].edge]
	for _, a := range l.near[1:] {
		// A neighbour may have gone with the key path of an earlier one.
		if t.on(a.to) && t.degree[v] < l.g.limit[v] {
			gain += l.close(v, a)
		}
	}
	if gain > l.eps {
		l.accept(v)
		return true
	}
	for _, h := range slices.Backward(l.journal) {
		t.parent[h.node], t.up[h.node], t.degree[h.node] = h.parent, h.up, h.degree
	}
	return false
}

func (l *local) save(v int32) {
	l.journal = append(l.journal, hold{v, l.t.parent[v], l.t.up[v], l.t.degree[v]})
}

// hang makes v, off the tree, a child of u.
func (l *local) hang(v, u, edge int32) {
	l.save(v)
	l.save(u)
	l.t.parent[v], l.t.up[v], l.t.degree[v] = u, edge, 1
	l.t.degree[u]++
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
	meet := l.meet(v, a.to)
	l.save(a.to)
	t.degree[a.to]++ // so that it counts as the end of a key path
	here, there := l.dearest(v, meet), l.dearest(a.to, meet)
	from, to, worst := v, a.to, here
	if there.cost > here.cost {
		from, to, worst = a.to, v, there
	}
	gain = worst.cost - l.cost[a.edge]
	if gain <= l.eps {
		t.degree[a.to]--
		return 0
	}
	l.save(v)
	t.degree[v]++
	l.drop(worst)
	// What hung below the lost path now hangs below the new edge.
	parent, edge := to, a.edge
	for x := from; ; {
		next, up := t.parent[x], t.up[x]
		l.save(x)
		t.parent[x], t.up[x] = parent, edge
		if x == worst.low {
			return gain
		}
		parent, edge, x = x, up, next
	}
}

// meet returns the lowest node that is above or equal to both u and v.
func (l *local) meet(u, v int32) int32 {
	l.climb++
	steps := 0
	for x := u; x >= 0; x = l.t.parent[x] {
		l.climbed[x] = l.climb
		steps++
	}
	for l.climbed[v] != l.climb {
		v = l.t.parent[v]
		steps++
	}
	l.g.meter.add(steps)
	return v
}

// dearest returns the dearest segment between v and top, which is above it.
func (l *local) dearest(v, top int32) (worst segment) {
	t := l.t
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

// drop takes the inner nodes of s off the tree. The parent of its lower end is
// left as it is.
func (l *local) drop(s segment) {
	t := l.t
	for _, end := range [2]int32{s.low, s.high} {
		l.save(end)
		t.degree[end]--
	}
	for x := t.parent[s.low]; x != s.high; {
		l.save(x)
		up := t.parent[x]
		t.parent[x], t.degree[x] = outside, 0
		x = up
	}
}

// accept makes the insertion of v part of the tree.
func (l *local) accept(v int32) {
	t := l.t
	edges := l.added[:0]
	for _, x := range t.order {
		if t.parent[x] >= 0 {
			edges = append(edges, t.up[x])
		}
	}
	edges = append(edges, t.up[v])
	l.added = edges
	t.order = append(t.order, v) // so that build clears it
	t.build(edges)
}
