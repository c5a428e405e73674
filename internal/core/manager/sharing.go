package manager

import (
	"cmp"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/quota"
)

// sharing is one round of giving slots to who can use them.
type sharing struct {
	*Core
	next     core.Time     // when there is something to do, if nothing happens before
	busy     int           // windows that are being changed
	moved    []*group      // whose share is not what they have
	reserved []reservation // slots that windows are to grow by
}

// reservation is slots that count in the books of an owner until the end of the round.
type reservation struct {
	owner string
	slots int
}

// ledger is a switch's slots in a round.
type ledger struct {
	round   uint64 // Core.shared for which the rest holds
	free    int    // slots that windows can grow into
	spare   int    // slots that first trees can take
	freeing int    // slots that become free as windows shrink, and that nobody counts on
	spent   uint32 // nothing is to be had here for a window of so much, or more; 0: not known
}

// ledger returns that of d in this round.
func (r *sharing) ledger(d *device) *ledger {
	l := &d.ledger
	if l.round == r.shared {
		return l
	}
	*l = ledger{round: r.shared, free: d.most() - d.most()/reserve - d.used, spare: max(0, d.most()-d.used)}
	for _, h := range d.holdings {
		stays := 0
		if g := r.groups[h.Group]; g == nil {
			continue
		} else if g.building != nil && g.building.site(d) != nil {
			stays = int(g.building.window)
		} else if g.active != nil && g.active.site(d) != nil {
			stays = int(g.active.window)
		}
		l.freeing += h.Slots - 2*stays
	}
	return l
}

// shareOf returns the window that g is to have by now.
func (r *sharing) shareOf(g *group) uint32 {
	if g.sharedIn != r.shared {
		g.sharedIn, g.share = r.shared, g.active.window
	}
	return g.share
}

// grow and shrink give g a share. Shrinking to more than before undoes it.
func (r *sharing) grow(g *group, share uint32) {
	more := r.growth(g)
	r.reserved = append(r.reserved, reservation{g.spec.Owner, more})
	r.book.Add(g.spec.Owner, quota.Slots, more)
	r.move(g, share, func(l *ledger, slots int) { l.free -= slots; l.spare -= slots })
}

func (r *sharing) shrink(g *group, share uint32) {
	r.move(g, share, func(l *ledger, slots int) { l.freeing -= slots })
}

func (r *sharing) move(g *group, share uint32, book func(l *ledger, slots int)) {
	if r.shareOf(g) == g.active.window {
		r.moved = append(r.moved, g)
	}
	for i := range g.active.sites {
		book(r.ledger(g.active.sites[i].on), 2*(int(share)-int(g.share)))
	}
	g.share = share
}

// collect returns the groups that can grow now, the oldest first, and has those
// give back that have not used what they have for long.
func (r *sharing) collect() (growers []*group) {
	stay := r.uneven[:0]
	for _, g := range r.uneven {
		have, want, at := r.difference(g)
		if g.uneven = want != have; !g.uneven {
			continue
		}
		stay = append(stay, g)
		switch {
		case g.building != nil:
			r.busy++
		case !r.steady(g):
		case at > r.now:
			r.next = r.next.Earlier(at)
		case want < have:
			r.shrink(g, want)
		default:
			r.shareOf(g)
			growers = append(growers, g)
		}
	}
	clear(r.uneven[len(stay):])
	r.uneven = stay
	slices.SortFunc(growers, func(a, b *group) int { return cmp.Compare(a.id, b.id) })
	return growers
}

// difference returns the window that g has, the one that it is to have by itself,
// and from when. What is no more than a group begins with it may keep.
func (r *sharing) difference(g *group) (have, want uint32, from core.Time) {
	if r.groups[g.id] != g || g.active == nil {
		return 0, 0, 0
	}
	have, want = g.active.window, r.wants(g)
	if want > have {
		return have, want, max(g.grows, g.notBefore)
	}
	want = min(have, max(want, r.within(g, r.cfg.StartWindow)))
	return have, want, max(g.shrinks, g.notBefore, g.demanded.Add(r.cfg.Idle))
}

// feed has others give back what groups without a tree lack for the smallest one.
// What is free they have before windows grow.
func (r *sharing) feed() {
	stay := r.starving[:0]
	for _, g := range r.starving {
		if len(g.starved) == 0 {
			continue // it has a tree, or was released
		}
		stay = append(stay, g)
		if g.building != nil {
			continue // it is in the books
		}
		ask := r.smallest(g)
		need := 2 * int(ask)
		if !r.press(g, g.starved, ask, func(d *device) int { return need - r.ledger(d).spare }) {
			continue
		}
		for _, d := range g.starved {
			l := r.ledger(d)
			l.spare = max(0, l.spare-need)
			l.free -= need
		}
	}
	clear(r.starving[len(stay):])
	r.starving = stay
}

// raise has windows grow as far as there is room: level by level, so that none
// grows while a smaller one could.
func (r *sharing) raise(growers []*group) {
	for level := uint32(1); level < r.cfg.MaxWindow; level *= 2 {
		for _, g := range growers {
			if g.share == level && level < r.wants(g) && len(r.lacking(g)) == 0 && r.affords(g) {
				r.grow(g, 2*level)
			}
		}
	}
}

// lacking returns the switches on which g's window cannot be doubled.
func (r *sharing) lacking(g *group) (all []*device) {
	for i := range g.active.sites {
		if d := g.active.sites[i].on; r.ledger(d).free < 2*int(g.share) {
			all = append(all, d)
		}
	}
	return all
}

// press has others give back what a group lacks for a window of ask, on all of the
// switches or on none: what they cannot use, and of windows that are larger than
// ask as much as leaves them that. It reports whether all will be free.
func (r *sharing) press(asker *group, on []*device, ask uint32, need func(*device) int) bool {
	type step struct {
		g      *group
		before uint32
	}
	var steps []step
	for _, d := range on {
		for l := r.ledger(d); l.freeing < need(d); {
			g, to := r.victim(d, asker, ask)
			if g == nil {
				for _, s := range slices.Backward(steps) {
					r.shrink(s.g, s.before)
				}
				return false
			}
			steps = append(steps, step{g, g.share})
			r.shrink(g, to)
		}
	}
	for _, d := range on {
		r.ledger(d).freeing -= max(0, need(d))
	}
	return true
}

// victim returns who on d is to give back for a window of ask, and the window that
// it keeps: first who cannot use what it has, then who has the most. nil: nobody.
func (r *sharing) victim(d *device, asker *group, ask uint32) (worst *group, keeps uint32) {
	l, surplus := r.ledger(d), false
	if len(r.moved)+r.busy >= r.cfg.MaxResizes {
		r.next = r.now // go on when these are done
		return nil, 0
	}
	if l.spent != 0 && ask >= l.spent {
		return nil, 0
	}
	for _, h := range d.holdings {
		g := r.groups[h.Group]
		if g == nil || g == asker || !r.steady(g) || r.shareOf(g) > g.active.window {
			continue
		}
		more := g.share > r.wants(g)
		switch {
		case !more && (g.share < 2*ask || surplus):
		case worst != nil && more == surplus && g.share < worst.share:
		case max(g.shrinks, g.notBefore) > r.now:
			r.next = r.next.Earlier(max(g.shrinks, g.notBefore))
		default:
			worst, surplus = g, more
		}
	}
	switch {
	case worst == nil:
		l.spent = ask
		return nil, 0
	case surplus:
		return worst, r.wants(worst)
	}
	return worst, worst.share / 2
}

// change begins what has been decided.
func (r *sharing) change() {
	for _, x := range r.reserved {
		r.book.Add(x.owner, quota.Slots, -x.slots)
	}
	for _, g := range r.moved {
		switch {
		case g.share == g.active.window || g.building != nil:
		case r.busy >= r.cfg.MaxResizes:
			r.next = r.now
		default:
			r.busy++
			r.resize(g, g.share)
		}
	}
}

// resize has g go over to another window, on the same tree: an offer like that of
// any other tree, which the members accept or not.
func (c *Core) resize(g *group, window uint32) {
	epoch := g.nextEpoch()
	if epoch == 0 {
		return
	}
	if window > g.active.window {
		c.resizes.Grown++
	} else {
		c.resizes.Shrunk++
	}
	c.note(g, "window of %d to be %d, it can use %d", g.active.window, window, c.wants(g))
	g.round = round{window: window, impaired: g.active.makeshift}
	c.out.Loads = append(c.out.Loads, g.active.plan.Tree) // for as long as both are there
	c.touch(g)
	c.begin(g, epoch, g.active.plan)
	c.count(g)
}
