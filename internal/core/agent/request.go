package agent

import (
	"fmt"
	"math/bits"
	"net/netip"
	"reflect"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// request names what a refusal or an answer is about.
type request struct {
	req         uint64
	incarnation uint64
	group       uint32
	epoch       uint32
}

func (p *Prepare) request() request {
	return request{p.Req, p.Incarnation, p.Group, p.Epoch}
}

func (m *Commit) request() request {
	return request{m.Req, m.Incarnation, m.Config.Group, m.Config.Epoch}
}

func (m *Remove) request() request {
	return request{m.Req, m.Incarnation, m.Group, m.Epoch}
}

func (c *Core) answer(q request, r Reply) {
	r.Req, r.Group, r.Epoch = q.req, q.group, q.epoch
	c.reply(r)
}

func (c *Core) refuse(q request, why *Refusal) {
	why.Switch = c.cfg.Name
	c.answer(q, Reply{Kind: Refused, Refusal: why})
}

// meant reports whether q is for this incarnation, and refuses it otherwise.
func (c *Core) meant(q request) bool {
	if q.incarnation == c.cfg.Incarnation {
		return true
	}
	c.refuse(q, &Refusal{
		Cause:  Incarnation,
		Detail: fmt.Sprintf("meant for incarnation %d, this is %d", q.incarnation, c.cfg.Incarnation),
	})
	return false
}

func (c *Core) prepare(p Prepare) {
	q := p.request()
	if !c.meant(q) {
		return
	}
	if t := c.trees[p.Group]; t != nil {
		if r := t.find(p.Epoch); r != nil {
			c.prepareAgain(r, p)
			return
		}
		if p.Epoch <= t.highest {
			c.refuse(q, &Refusal{Cause: StaleEpoch, Detail: fmt.Sprintf("epoch %d, epoch %d was here", p.Epoch, t.highest)})
			return
		}
	}
	if why := c.admit(&p); why != nil {
		c.refuse(q, why)
		return
	}
	if p.Lease == 0 {
		p.Lease = c.cfg.PrepareLease
	}
	t := c.treeOf(p.Group)
	r := &reservation{tree: t, epoch: p.Epoch, ask: p, until: c.now.Add(p.Lease)}
	c.hold(r)
	c.prepared(r)
}

// prepareAgain answers a Prepare for an epoch that is held.
func (c *Core) prepareAgain(r *reservation, p Prepare) {
	if p.Lease == 0 {
		p.Lease = c.cfg.PrepareLease
	}
	terms := r.ask
	terms.Req, terms.Lease = p.Req, p.Lease
	if terms != p {
		c.refuse(p.request(), &Refusal{Cause: Conflict, Detail: "prepared on other terms"})
		return
	}
	if r.waiting {
		c.refuse(r.ask.request(), &Refusal{Cause: Superseded})
	}
	r.ask = p
	r.until = c.now.Add(p.Lease)
	c.prepared(r)
}

// prepared answers r's Prepare as soon as the tree has its address.
func (c *Core) prepared(r *reservation) {
	r.waiting = !r.tree.addr.IsValid()
	if !r.waiting {
		c.answer(r.ask.request(), Reply{Kind: Prepared, Addr: r.tree.addr})
	}
}

// admit returns why there is no room for p, or nil.
func (c *Core) admit(p *Prepare) *Refusal {
	can := &c.cfg.Capability
	switch {
	case p.Epoch == 0 || p.Epoch%2 != 0 || bits.OnesCount32(p.Window) != 1 || p.Window > switchreduce.MaxWindow || p.Children < 1 || p.ChunkBytes < 1 || p.Lease < 0 || !p.Protection.Valid():
		return &Refusal{Cause: BadRequest, Detail: fmt.Sprintf("epoch %d, window %d, %d children, chunks of %d bytes, lease %v",
			p.Epoch, p.Window, p.Children, p.ChunkBytes, p.Lease)}
	case c.draining:
		return &Refusal{Cause: Draining}
	case c.unusable != "":
		return &Refusal{Cause: Socket, Detail: c.unusable}
	case !can.Functions.Covers(p.Functions):
		return &Refusal{Cause: Functions, Detail: fmt.Sprintf("wanted %v, it has %v", p.Functions, can.Functions)}
	case !can.Types.Covers(p.Types):
		return &Refusal{Cause: Types, Detail: fmt.Sprintf("wanted %v, it has %v", p.Types, can.Types)}
	case p.Protection != wire.Plain && can.Plain:
		return &Refusal{Cause: Protection, Detail: fmt.Sprintf("wanted packets that are %v, it takes plain ones", p.Protection)}
	case p.Children > can.Children:
		return &Refusal{Cause: Children, Need: p.Children, Free: can.Children}
	case p.ChunkBytes+p.Protection.Overhead() > can.Chunk:
		return &Refusal{Cause: ChunkSize, Need: p.ChunkBytes + p.Protection.Overhead(), Free: can.Chunk}
	}
	own := 0
	if t := c.trees[p.Group]; t != nil {
		own = t.slots()
		if len(t.held) >= c.cfg.Epochs {
			return &Refusal{Cause: Epochs, Need: 1, Free: 0}
		}
	}
	need, free := 2*int(p.Window), can.Slots-c.used+own
	if need > free {
		why := &Refusal{Cause: Slots, Need: need, Free: free}
		why.Holders, why.More = c.holders(p.Group)
		return why
	}
	return nil
}

// bound takes the address of a socket, and answers who waited for it.
func (c *Core) bound(in Bound) {
	t := c.bySocket[in.Socket]
	if t == nil || t.addr.IsValid() {
		return
	}
	if in.Failed == "" && in.Addr.IsValid() {
		// As packets from it will look to whoever compares (see package aggregate).
		t.addr = netip.AddrPortFrom(in.Addr.Addr().Unmap(), in.Addr.Port())
		for _, r := range t.held {
			c.prepared(r)
		}
		return
	}
	for len(t.held) > 0 {
		r := t.held[0]
		if r.waiting {
			r.waiting = false
			c.refuse(r.ask.request(), &Refusal{Cause: Socket, Detail: in.Failed})
		}
		c.end(r, "")
	}
}

func (c *Core) commit(m Commit) {
	q := m.request()
	if !c.meant(q) {
		return
	}
	t := c.trees[q.group]
	var r *reservation
	if t != nil {
		r = t.find(q.epoch)
	}
	if r == nil {
		c.refuse(q, &Refusal{Cause: StaleEpoch, Detail: fmt.Sprintf("epoch %d is not held", q.epoch)})
		return
	}
	if r.committed {
		if reflect.DeepEqual(r.config, m.Config) {
			c.answer(q, Reply{Kind: Committed, Reducer: r.reducer})
		} else {
			c.refuse(q, &Refusal{Cause: Conflict, Detail: "committed with another configuration"})
		}
		return
	}
	if why := r.fits(&m); why != nil {
		c.refuse(q, why)
		return
	}
	r.committed, r.config = true, m.Config
	t.installed = r.epoch
	c.sure(r)
	c.act(t, Install, r.epoch, &r.config)
	c.answer(q, Reply{Kind: Committed})
}

// fits returns why m cannot be committed in r, or nil.
func (r *reservation) fits(m *Commit) *Refusal {
	cfg := &m.Config
	if err := cfg.Validate(); err != nil {
		return &Refusal{Cause: BadRequest, Detail: err.Error()}
	}
	if !r.tree.addr.IsValid() {
		return &Refusal{Cause: BadRequest, Detail: "commit before the answer to prepare"}
	}
	if cfg.Window != r.ask.Window || len(cfg.Children) > r.ask.Children || cfg.ChunkBytes > r.ask.ChunkBytes {
		return &Refusal{Cause: Conflict, Detail: fmt.Sprintf("prepared for window %d, %d children, chunks of %d bytes; committed with %d, %d, %d",
			r.ask.Window, r.ask.Children, r.ask.ChunkBytes, cfg.Window, len(cfg.Children), cfg.ChunkBytes)}
	}
	if cfg.Protection != r.ask.Protection {
		return &Refusal{Cause: Conflict, Detail: fmt.Sprintf("prepared for packets that are %v; committed with %v", r.ask.Protection, cfg.Protection)}
	}
	if later := r.tree.installed; later > r.epoch {
		return &Refusal{Cause: StaleEpoch, Detail: fmt.Sprintf("epoch %d was committed", later)}
	}
	return nil
}

func (c *Core) remove(m Remove) {
	q := m.request()
	if !c.meant(q) {
		return
	}
	t := c.treeOf(q.group)
	if r := t.find(q.epoch); r != nil {
		c.end(r, "removed")
	} else if q.epoch > t.highest {
		t.highest = q.epoch
		if len(t.held) == 0 {
			c.rest(t)
		}
	} else if t.highest == 0 {
		// Epoch 0 of a tree that never was: nothing to remember.
		delete(c.trees, t.group)
	}
	c.answer(q, Reply{Kind: Removed})
}
