package epoch

import (
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// raise takes an alarm to the lowest rank, where it begins a round.
func (c *Core) raise(now core.Time, a *wire.Alarm) {
	if c.phase != running || a.Epoch != c.epoch || c.alarm != nil {
		return
	}
	c.alarm = a
	if c.cfg.Parent == NoParent {
		c.collect(now)
		return
	}
	c.sendUp(a.Append(nil))
}

// collect begins the next round: the member and all beneath it freeze.
func (c *Core) collect(now core.Time) {
	c.phase, c.reported = collecting, false
	c.round++
	for i := range c.children {
		c.children[i].report = nil
	}
	c.sendDown((&wire.Collect{Round: c.round, Epoch: c.epoch}).Append(nil))
	c.own = c.member.Freeze()
	c.merge(now)
}

// merge makes one report of the member's own and its children's, once all of
// them are there, and passes it on.
func (c *Core) merge(now core.Time) {
	r := wire.Report{Round: c.round, Base: c.own.Base}
	for i := range c.children {
		k := c.children[i].report
		if k == nil {
			return
		}
		if wire.Newer(r.Base, k.Base) {
			r.Base = k.Base
		}
	}
	r.Offers = c.common()
	from, span := r.Base-c.cfg.Window, int(2*c.cfg.Window)
	r.Held.Init(from, span)
	r.Held.Add(&c.own.Held)
	lack := wire.Numbers{}
	lack.Init(from, span)
	lack.Add(&c.own.Lack)
	for i := range c.children {
		r.Held.Add(&c.children[i].report.Held)
		lack.Add(&c.children[i].report.Lack)
	}
	r.Lack.Init(from, span)
	lack.Each(func(n uint32) {
		if !c.own.Held.Has(n) {
			r.Lack.Set(n)
		}
	})
	c.report, c.reported = r, true
	if c.cfg.Parent >= 0 {
		c.sendUp(r.Append(nil))
		return
	}
	c.decided(now, c.choose())
}

// common returns the offers that this member and all beneath it hold, the
// newest ones if there are many.
func (c *Core) common() []uint32 {
	var epochs []uint32
	for _, o := range c.offers {
		if o.withdrawn == "" && c.allReport(o.link.Epoch) {
			epochs = append(epochs, o.link.Epoch)
		}
	}
	return epochs[max(0, len(epochs)-wire.MaxOffers):]
}

func (c *Core) allReport(epoch uint32) bool {
	return core.Find(c.children, func(k *child) bool { return !slices.Contains(k.report.Offers, epoch) }) == nil
}

// choose makes the lowest rank's decision from the report of all.
func (c *Core) choose() *wire.Decide {
	d := &wire.Decide{Round: c.round, Base: c.report.Base, Rank: c.cfg.Rank, Reason: "the manager offered a tree of switches"}
	d.Epoch = c.epoch + 1 + c.epoch%2
	if n := len(c.report.Offers); n > 0 {
		d.Epoch = c.report.Offers[n-1]
	}
	if c.alarm != nil {
		d.Rank, d.Reason = c.alarm.Rank, c.alarm.Reason
	}
	d.Held.Init(d.Base, int(c.cfg.Window))
	d.Held.Add(&c.report.Held)
	d.Give.Init(d.Base, int(c.cfg.Window))
	c.report.Lack.Each(func(n uint32) {
		if d.Held.Has(n) {
			d.Give.Set(n)
		}
	})
	return d
}

// decided passes the decision on and enters the epoch.
func (c *Core) decided(now core.Time, d *wire.Decide) {
	link, why, ok := c.link(d.Epoch)
	if !ok || d.Epoch <= c.epoch {
		c.failed(wire.Fail{
			Kind: wire.FailInternal, Rank: c.cfg.Rank,
			Reason: fmt.Sprintf("epoch %d was decided upon in epoch %d, and this member does not hold it", d.Epoch, c.epoch),
		})
		return
	}
	c.phase, c.epoch, c.decide, c.alarm, c.passing = running, d.Epoch, d, nil, nil
	c.unsettle(d.Base)
	c.share(d)
	for i := range c.children {
		c.pass(&c.children[i])
	}
	c.give(&d.Give)
	c.forget()
	err := c.member.Enter(now, d.Epoch, link, session.Decision{Base: d.Base, Held: d.Held}, d.Reason)
	if err != nil {
		c.failed(wire.Fail{Kind: wire.FailInternal, Rank: c.cfg.Rank, Reason: err.Error()})
		return
	}
	if why != "" {
		c.raise(now, &wire.Alarm{Epoch: d.Epoch, Rank: c.cfg.Rank, Reason: why})
	}
	c.hold(now)
}

// link returns the way into an epoch: nil for one on the tree of hosts.
func (c *Core) link(epoch uint32) (link *session.Link, withdrawn string, ok bool) {
	if epoch%2 == 1 {
		return nil, "", true
	}
	for i := range c.offers {
		if o := &c.offers[i]; o.link.Epoch == epoch {
			l := o.link
			return &l, o.withdrawn, true
		}
	}
	return nil, "", false
}

// share notes for each child what it is to be sent, and which of the results
// that this member is to give, but does not have, it is to send up.
func (c *Core) share(d *wire.Decide) {
	for i := range c.children {
		k := &c.children[i]
		k.lack.Init(d.Base, int(c.cfg.Window))
		k.give.Init(d.Base, int(c.cfg.Window))
		k.report.Lack.Each(func(n uint32) {
			if d.Held.Has(n) {
				k.lack.Set(n)
			}
		})
	}
	d.Give.Each(func(n uint32) {
		if c.own.Held.Has(n) {
			return
		}
		for i := range c.children {
			if k := &c.children[i]; k.report.Held.Has(n) {
				k.give.Set(n)
				return
			}
		}
	})
}

// pass sends the last decision to a child, with the results that it lacks and
// this member has.
func (c *Core) pass(k *child) {
	d := *c.decide
	d.Give = k.give
	c.send(k.rank, d.Append(nil))
	k.lack.Each(func(n uint32) { c.fillTo(k.rank, n) })
}

// give sends the results up that this member is to give and has.
func (c *Core) give(numbers *wire.Numbers) {
	if c.cfg.Parent >= 0 {
		numbers.Each(func(n uint32) { c.fillTo(uint32(c.cfg.Parent), n) })
	}
}

func (c *Core) fillTo(rank, n uint32) {
	if data, exponent, ok := c.member.Kept(n); ok {
		c.send(rank, (&wire.Fill{Round: c.decide.Round, Chunk: n, Exponent: exponent, Data: data}).Append(nil))
	} else if frame, passes := c.passing[n]; passes {
		c.send(rank, frame)
	}
}

// fill takes a result that another member held, and sends it on to who lacks
// it. From a child it goes up to the lowest rank first; from there down, also
// to that child, beneath which another may lack it.
func (c *Core) fill(now core.Time, m *wire.Fill, from *child) {
	if c.phase != running || c.decide == nil || m.Round != c.decide.Round {
		return
	}
	c.member.Fill(now, m.Chunk, m.Data, m.Exponent)
	frame := m.Append(nil)
	if _, _, ok := c.member.Kept(m.Chunk); !ok {
		if c.passing == nil {
			c.passing = map[uint32][]byte{}
		}
		c.passing[m.Chunk] = frame
	}
	if from != nil && c.cfg.Parent >= 0 {
		if c.decide.Give.Has(m.Chunk) {
			c.sendUp(frame)
		}
		return
	}
	for i := range c.children {
		if k := &c.children[i]; k.lack.Has(m.Chunk) {
			c.send(k.rank, frame)
		}
	}
}
