package epoch

import (
	"cmp"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// offered keeps an offer, unless it is smaller than what was before it.
func (c *Core) offered(now core.Time, link session.Link) {
	if link.Epoch%2 != 0 || link.Epoch <= c.epoch {
		return
	}
	for _, o := range c.offers {
		if o.link.Epoch == link.Epoch {
			return
		}
	}
	c.offers = append(c.offers, offer{link: link})
	slices.SortFunc(c.offers, func(a, b offer) int { return cmp.Compare(a.link.Epoch, b.link.Epoch) })
	c.bound()
	c.hold(now)
}

// bound drops the oldest offer if there are too many. One that was reported may
// be decided upon and is kept beyond that number.
func (c *Core) bound() {
	isReported := func(o offer) bool {
		return c.phase == collecting && c.reported && slices.Contains(c.report.Offers, o.link.Epoch)
	}
	oldest, free := -1, 0
	for i, o := range c.offers {
		if isReported(o) {
			continue
		}
		if free++; oldest < 0 {
			oldest = i
		}
	}
	if free > wire.MaxOffers {
		c.offers = slices.Delete(c.offers, oldest, oldest+1)
	}
}

// withdrawn forgets an offer, or gives the alarm if it is the present epoch's.
func (c *Core) withdrawn(now core.Time, epoch uint32, why string) {
	if why == "" {
		why = "the manager withdrew the tree"
	}
	if epoch == c.epoch {
		c.raise(now, &wire.Alarm{Epoch: epoch, Rank: c.cfg.Rank, Reason: why})
		return
	}
	for i := range c.offers {
		if c.offers[i].link.Epoch == epoch {
			c.offers[i].withdrawn = why
		}
	}
}

// holding notes that a child's whole subtree holds an offer.
func (c *Core) holding(now core.Time, k *child, epoch uint32) {
	if epoch <= c.epoch || slices.Contains(k.holding, epoch) {
		return
	}
	if len(k.holding) == wire.MaxOffers {
		k.holding = slices.Delete(k.holding, 0, 1)
	}
	k.holding = append(k.holding, epoch)
	c.hold(now)
}

// hold reports to the parent the newest offer that the member and all beneath it
// hold; at the lowest rank, such an offer begins a round.
func (c *Core) hold(now core.Time) {
	if c.phase != running {
		return
	}
	for _, o := range slices.Backward(c.offers) {
		e := o.link.Epoch
		if e <= c.announced || e <= c.epoch {
			return
		}
		if o.withdrawn != "" || !c.allHold(e) {
			continue
		}
		c.announced = e
		if c.cfg.Parent == NoParent {
			c.collect(now)
		} else {
			c.sendUp((&wire.Holding{Epoch: e}).Append(nil))
		}
		return
	}
}

func (c *Core) allHold(epoch uint32) bool {
	return core.Find(c.children, func(k *child) bool { return !slices.Contains(k.holding, epoch) }) == nil
}

// forget drops what epochs up to the present one have left.
func (c *Core) forget() {
	c.offers = slices.DeleteFunc(c.offers, func(o offer) bool { return o.link.Epoch <= c.epoch })
	for i := range c.children {
		k := &c.children[i]
		k.holding = slices.DeleteFunc(k.holding, func(e uint32) bool { return e <= c.epoch })
	}
}
