package epoch

import (
	"fmt"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// failed reports to the lowest rank, which notifies all. A member that gives up, or
// whose parent is dead or gone, cannot wait for that word. A parent that is taken for dead may live,
// and be out of reach of some members alone: it hears of it. A revoke is not reported: see end.
func (c *Core) failed(f wire.Fail) {
	if c.phase == ended || c.phase == left {
		return
	}
	orphan := c.parentGone || f.Kind == wire.FailDead && int(f.Rank) == c.cfg.Parent
	quits := f.Kind == wire.FailCancel && f.Rank == c.cfg.Rank
	switch {
	case f.Kind == wire.FailRevoked:
		c.end(f)
	case orphan && c.fail != nil: // which the parent has, or nobody needs to know
		c.end(*c.fail)
	case orphan && !c.parentGone:
		c.sendUp(f.Append(nil))
		c.end(f)
	case orphan || c.cfg.Parent == NoParent:
		c.end(f)
	case quits:
		c.sendUp(f.Append(nil))
		c.end(f)
	case c.fail == nil:
		c.fail = &f
		c.sendUp(f.Append(nil))
	}
}

// end ends the communicator here and beneath. The notice of a revoke has its own ways to all
// members (package revoke), which need no lowest rank: here it goes to neighbours that connect
// anew only.
func (c *Core) end(f wire.Fail) {
	if c.phase == ended || c.phase == left {
		return
	}
	c.phase, c.fail = ended, &f
	if f.Kind != wire.FailRevoked {
		c.sendDown(f.Append(nil))
	}
	c.member.End(f)
}

// dead takes the death of a neighbour, which ends the communicator unless it
// had said goodbye. For a member that has left, it is as good as a goodbye, and so is a fail.
func (c *Core) dead(rank uint32, why string) {
	k := c.child(rank)
	if k == nil && int(rank) != c.cfg.Parent || k != nil && k.gone {
		return
	}
	if c.phase == left {
		c.parted(k)
		return
	}
	c.parentGone = c.parentGone || k == nil
	c.failed(wire.Fail{Kind: wire.FailDead, Rank: rank, Reason: why})
}

// noticed passes the manager's word on, once.
func (c *Core) noticed(n *wire.Notice) {
	if c.notice != nil && *c.notice == *n {
		return
	}
	announced := *n
	c.notice, c.out.Notice = &announced, &announced
	c.sendDown(announced.Append(nil))
}

// leave says goodbye to all neighbours.
func (c *Core) leave() {
	c.phase = left
	goodbye := wire.AppendGoodbye(nil)
	c.sendUp(goodbye)
	c.sendDown(goodbye)
	c.departed()
}

// goodbye takes a neighbour's: it completes the last barrier, to which every
// member has contributed, and so ends any round, too. Where this member does
// not know of a last barrier, the two disagree, and a parent that has left
// takes no word of it any more.
func (c *Core) goodbye(now core.Time, rank uint32, from *child) {
	if c.phase == left {
		c.parted(from)
		return
	}
	if from != nil {
		from.gone = true
	} else {
		c.parentGone = true
	}
	switch {
	case c.member.FinishLast(now):
		c.leave()
	default:
		c.failed(wire.Fail{
			Kind: wire.FailInternal, Rank: c.cfg.Rank,
			Reason: fmt.Sprintf("rank %d has left the group, and rank %d was not leaving", rank, c.cfg.Rank),
		})
	}
}

// parted takes, as a member that has left, that a neighbour, a child or nil for the parent, awaits nothing
// of it any more.
func (c *Core) parted(from *child) {
	if from != nil {
		from.gone = true
	} else {
		c.parentGone = true
	}
	c.departed()
}

// departed reports, once, that every neighbour has said goodbye.
func (c *Core) departed() {
	all := c.parentGone || c.cfg.Parent == NoParent
	for i := range c.children {
		all = all && c.children[i].gone
	}
	if all && !c.gone {
		c.gone, c.out.Gone = true, true
	}
}
