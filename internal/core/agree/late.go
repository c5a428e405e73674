package agree

import "slices"

// maxLate are the most ranks that are named as late.
const maxLate = 8

// Late returns the members for whom the next agreement waits, as far as is known: up to eight.
func (c *Core) Late() []uint32 {
	r := c.next
	switch {
	case r == nil:
		return nil
	case len(r.late) > 0:
		return slices.Clone(r.late)
	}
	if late := c.missing(r); len(late) > 0 || r.ballot == c.cfg.Rank {
		return late
	}
	return []uint32{r.ballot}
}

// missing returns who in this member's subtree is waited for.
func (c *Core) missing(r *round) []uint32 {
	var all []uint32
	if !r.isStarted {
		all = append(all, c.cfg.Rank)
	}
	for _, k := range r.pending {
		if len(k.late) > 0 {
			all = append(all, k.late...)
		} else {
			all = append(all, k.rank)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), maxLate)]
}

// callLate reports who is waited for: up the tree, and at the leader down.
func (c *Core) callLate(r *round) {
	r.pause *= 2
	r.slowAt = c.now.Add(r.pause)
	late := c.missing(r)
	if r.ballot == c.cfg.Rank {
		r.late = late
		c.passLate(r)
	} else if len(late) > 0 {
		parent := newTree(c.cfg.Size, r.failed).parent(c.cfg.Rank)
		c.send(parent, &message{kind: Late, number: r.number, before: r.before, stamp: r.stamp, failed: late})
	}
}

// passLate passes the leader's word on.
func (c *Core) passLate(r *round) {
	for _, rank := range newTree(c.cfg.Size, r.failed).children(c.cfg.Rank) {
		if !c.dead.has(rank) {
			c.send(rank, &message{kind: Late, number: r.number, before: r.before, stamp: r.stamp, failed: r.late, isDown: true})
		}
	}
}

// isLate takes who is waited for: of a child, or by the leader's word.
func (c *Core) isLate(r *round, from uint32, m *message) {
	if m.stamp != r.stamp || r.isDecided() || len(m.failed) > maxLate {
		return
	}
	if !m.isDown {
		if i := slices.IndexFunc(r.pending, func(k child) bool { return k.rank == from }); i >= 0 {
			r.pending[i].late = m.failed
		}
		return
	}
	if r.ballot != c.cfg.Rank && newTree(c.cfg.Size, r.failed).parent(c.cfg.Rank) == from {
		r.late = m.failed
		c.passLate(r)
	}
}
