package switchreduce

import (
	"net/netip"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// epoch is an installed epoch.
type epoch struct {
	*Config           // a copy, behind a pointer: see wire.Secret
	lease   core.Time // when its lease runs out
	sent    core.Time // when something last went to the parent
	ended   bool      // a later epoch has begun: its packets are dropped
	begun   bool      // a packet of it was admitted
	taken   uint64    // by its fast path, when the lease was last looked at

	traffic []Traffic // by child index, then the parent's
}

// renew starts the lease anew.
func (e *epoch) renew(now core.Time) {
	e.lease = core.Never
	if e.Lease > 0 {
		e.lease = now.Add(e.Lease)
	}
}

// find returns the installed epoch of that number, or nil.
func (c *Core) find(number uint32) *epoch {
	for i := len(c.epochs) - 1; i >= 0; i-- {
		if c.epochs[i].Epoch == number {
			return &c.epochs[i]
		}
	}
	return nil
}

// install lets an epoch begin with its first packet. The epochs before it go
// on until then. An epoch that is not above all that were ever installed is
// refused: what was lost with it would be taken for never sent.
func (c *Core) install(now core.Time, cfg *Config, out *Output) {
	switch {
	case cfg == nil || cfg.Validate() != nil || c.newest != 0 && cfg.Group != c.group:
		c.drop(DropConfig)
		return
	case cfg.Epoch <= c.newest:
		c.drop(DropRefused)
		return
	case !c.makeRoom(out):
		c.drop(DropFull)
		return
	}
	c.group, c.newest = cfg.Group, cfg.Epoch
	own := *cfg
	own.Children = slices.Clone(cfg.Children)
	e := epoch{Config: &own, sent: now}
	e.traffic = make([]Traffic, len(cfg.Children)+1)
	e.renew(now)
	c.epochs = append(c.epochs, e)
	c.extend(int(2 * cfg.Window))
	c.fit(c.places, wire.HeaderSize+max(cfg.ChunkBytes, wire.ErrorBodySize))
}

// makeRoom makes room for one more epoch and reports whether there is any: an
// epoch that has ended gives way before its lease has run out.
func (c *Core) makeRoom(out *Output) bool {
	if len(c.epochs) < MaxEpochs {
		return true
	}
	if !c.epochs[0].ended {
		return false
	}
	c.lapse(0, out)
	return true
}

// begin ends all epochs before e, of which a packet has come: its sender knows
// that every member has left them. One without a lease is forgotten at once,
// of the others the lease still reports when their reservation is free. It
// returns where e is afterwards.
func (c *Core) begin(e *epoch, out *Output) *epoch {
	number := e.Epoch
	if c.epochs[0].Epoch == number {
		return e
	}
	c.repay()
	c.emit(out)
	for i := 0; c.epochs[i].Epoch != number; i++ {
		c.epochs[i].ended = true
	}
	c.epochs = slices.DeleteFunc(c.epochs, func(e epoch) bool { return e.ended && e.Lease == 0 })
	return c.find(number)
}

// retire forgets an epoch, because the control plane says so.
func (c *Core) retire(number uint32) {
	c.epochs = slices.DeleteFunc(c.epochs, func(e epoch) bool { return e.Epoch == number })
	c.tidy()
}

// expire forgets the epochs whose lease has run out.
func (c *Core) expire(now core.Time, out *Output) {
	for i := 0; i < len(c.epochs); {
		if e := &c.epochs[i]; now >= e.lease && !e.inUse(now) {
			c.counters.Expired++
			c.lapse(i, out)
			c.last.epoch = nil
			continue
		}
		i++
	}
}

func (c *Core) lapse(i int, out *Output) {
	out.Expired = append(out.Expired, c.epochs[i].Epoch)
	c.epochs = slices.Delete(c.epochs, i, i+1)
	c.tidy()
}

// tidy gives the slots' memory back when no epoch is left to use it. A Send of
// this Step may still point into it, which keeps that part alive.
func (c *Core) tidy() {
	if len(c.epochs) == 0 {
		c.slots, c.memory = slots{}, memory{}
	}
}

// keepAlive sends the parent an idle probe when a child has spoken and nothing
// has gone up for a third of the lease. Without it, a parent whose children
// all wait for a late member would hear nothing and drop the epoch: a probe
// for a chunk that is not complete is answered here.
func (c *Core) keepAlive(now core.Time, e *epoch, out *Output) {
	if e.Lease > 0 && !e.root() && now.Sub(e.sent) >= e.Lease/3 {
		c.idleProbe(now, e, out)
	}
}

// idleProbe reports to the parent, and those above it, that the epoch is in use.
func (c *Core) idleProbe(now core.Time, e *epoch, out *Output) {
	if e.root() {
		return
	}
	c.counters.Kept++
	h := e.header(wire.Probe, 0)
	h.Flags = wire.Idle
	if c.isSettled {
		h.SetSettled(c.settled)
	}
	e.sendUp(now, &h, nil, out)
}

// header begins a packet about number n, without what differs by receiver.
func (e *epoch) header(t wire.Type, n uint32) wire.Header {
	return wire.Header{
		Type: t, Group: e.Group, Epoch: e.Epoch, Chunk: n, Lowest: e.Children[0].Lowest,
	}
}

// sendUp sends a packet to the parent.
func (e *epoch) sendUp(now core.Time, h *wire.Header, body []byte, out *Output) {
	e.sent = now
	h.Child, h.Cookie = e.Index, e.Cookie
	e.gave(len(e.Children), body)
	send(e.Parent, h, body, out)
}

// sendDown sends a packet to a child.
func (e *epoch) sendDown(child int, h *wire.Header, body []byte, out *Output) {
	h.Child, h.Cookie = uint16(child), e.Children[child].Cookie
	e.gave(child, body)
	send(e.Children[child].Addr, h, body, out)
}

func send(to netip.AddrPort, h *wire.Header, body []byte, out *Output) {
	out.Sends = append(out.Sends, Send{To: to, Body: body})
	h.Put(out.Sends[len(out.Sends)-1].Head[:])
}
