package agent

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/topology"
)

// tree is one tree of a group on this switch.
type tree struct {
	group uint32
	// highest is the greatest epoch that was ever accepted, or removed before
	// it came. An epoch up to it that is not in held is stale.
	highest   uint32
	installed uint32         // the last that was committed: they are so in rising order
	held      []*reservation // rising epochs

	socket uint64         // 0 if and only if held is empty
	addr   netip.AddrPort // zero until Bound
	gone   uint64         // counts how often held became empty; distinguishes idle entries
}

// reservation is the promise of one epoch.
type reservation struct {
	tree      *tree
	epoch     uint32
	ask       Prepare // its terms
	waiting   bool    // ask.Req has not been answered: the socket is being opened
	until     core.Time
	committed bool
	retired   bool // the aggregate core has forgotten it already
	config    switchreduce.Config
	reducer   topology.Reducer // committed, and the driver has reported
}

type idleTree struct {
	group uint32
	gone  uint64
}

func (t *tree) find(epoch uint32) *reservation {
	for _, r := range t.held {
		if r.epoch == epoch {
			return r
		}
	}
	return nil
}

// slots returns what t counts for: the largest of its epochs.
func (t *tree) slots() int {
	n := 0
	for _, r := range t.held {
		n = max(n, 2*int(r.ask.Window))
	}
	return n
}

// treeOf returns the tree of a group, a new one if need be.
func (c *Core) treeOf(group uint32) *tree {
	t := c.trees[group]
	if t == nil {
		t = &tree{group: group}
		c.trees[group] = t
	}
	return t
}

// hold adds r to its tree.
func (c *Core) hold(r *reservation) {
	t := r.tree
	before := t.slots()
	t.held = append(t.held, r)
	t.highest = r.epoch
	c.used += t.slots() - before
	c.unsure = append(c.unsure, r)
	if t.socket == 0 {
		c.sockets++
		t.socket = c.sockets
		c.bySocket[t.socket] = t
		c.act(t, Open, 0, nil)
	}
}

// end takes r from its tree, and closes the tree's socket with the last one.
// A Prepare that still waits is refused; why completes the reason.
func (c *Core) end(r *reservation, why string) {
	t := r.tree
	before := t.slots()
	t.held = slices.DeleteFunc(t.held, func(x *reservation) bool { return x == r })
	c.used += t.slots() - before
	c.sure(r)
	if r.waiting {
		r.waiting = false
		c.refuse(r.ask.request(), &Refusal{Cause: StaleEpoch, Detail: why})
	}
	if len(t.held) == 0 {
		c.act(t, Close, 0, nil)
		delete(c.bySocket, t.socket)
		t.socket, t.addr = 0, netip.AddrPort{}
		c.rest(t)
	} else if r.committed && !r.retired {
		c.act(t, Retire, r.epoch, nil)
	}
}

// sure takes r from the list of those that may run out.
func (c *Core) sure(r *reservation) {
	c.unsure = slices.DeleteFunc(c.unsure, func(x *reservation) bool { return x == r })
}

// rest remembers the epochs of a tree that holds nothing, and forgets the
// oldest such tree when there are too many.
func (c *Core) rest(t *tree) {
	t.gone++
	c.idle = append(c.idle, idleTree{t.group, t.gone})
	for len(c.idle) > c.cfg.History {
		old := c.idle[0]
		c.idle = c.idle[1:]
		if o := c.trees[old.group]; o != nil && len(o.held) == 0 && o.gone == old.gone {
			delete(c.trees, old.group)
		}
	}
}

func (c *Core) act(t *tree, kind ActionKind, epoch uint32, cfg *switchreduce.Config) {
	c.out.Actions = append(c.out.Actions, Action{
		Kind: kind, Socket: t.socket, Group: t.group, Epoch: epoch, Config: cfg,
	})
}

// holders returns the groups that have slots, the largest first, without the
// tree of that group, and how many there are beyond MaxHolders.
func (c *Core) holders(group uint32) (all []Holder, more int) {
	for _, t := range c.bySocket {
		if t.group != group {
			all = append(all, Holder{Group: t.group, Slots: t.slots()})
		}
	}
	return Largest(all)
}

// Largest sorts holders by their slots, the largest first, joins those of one
// group, and cuts the list to MaxHolders; more is how many it cut.
func Largest(all []Holder) (kept []Holder, more int) {
	slices.SortFunc(all, func(a, b Holder) int { return cmp.Compare(a.Group, b.Group) })
	for _, h := range all {
		if n := len(kept); n > 0 && kept[n-1].Group == h.Group {
			kept[n-1].Slots += h.Slots
		} else {
			kept = append(kept, h)
		}
	}
	slices.SortFunc(kept, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Slots, a.Slots), cmp.Compare(a.Group, b.Group))
	})
	if len(kept) > MaxHolders {
		kept, more = kept[:MaxHolders], len(kept)-MaxHolders
	}
	return kept, more
}
