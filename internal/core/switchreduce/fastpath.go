package switchreduce

import (
	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// FastPath reduces for an epoch before packets come to the core: a program in the
// operating system's kernel, say. It keeps slots of its own, by the same rules, and
// lets packets pass to the core that it does not take. See the package comment.
type FastPath interface {
	// Take makes the core the owner of number n until the slot serves a newer one:
	// the fast path lets all packets about it pass. What it holds of n it gives to
	// held, packets as they came: contributions by child, then the result; they may
	// be read until the end of the Step. With supersede, a slot that serves an older
	// number is taken as well. Take returns false if the slot serves a newer one.
	Take(n uint32, supersede bool, held func(packet []byte)) bool

	// Taken returns how many packets the fast path has taken: an epoch of which it
	// takes some is in use.
	Taken() uint64
}

// own makes the core own the number of an admitted packet, and takes what the fast path
// holds of it. It returns false if there the slot serves a newer number.
func (c *Core) own(now core.Time, e *epoch, p *packet, out *Output) bool {
	supersedes := p.Type == wire.Contribution || p.Type == wire.Error
	if p.Flags&wire.Idle != 0 && p.Type == wire.Probe {
		return true // about no number
	}
	adopted := false
	c.adopting = true
	isOwn := e.FastPath.Take(p.Chunk, supersedes, func(b []byte) {
		adopted = true
		c.adopt(now, e, p.Chunk, b, out)
	})
	c.adopting = false
	// The parent of which there is a result has the partial.
	if s := c.at(e, p.Chunk); adopted && p.Type != wire.Result && s.age(e.Epoch, p.Chunk) == same && s.state == complete {
		c.sendPartial(now, e, s, out)
	}
	return isOwn
}

// adopt takes a packet about number n from the fast path, which has admitted it.
func (c *Core) adopt(now core.Time, e *epoch, n uint32, b []byte, out *Output) {
	p := packet{epoch: e}
	payload, fault := p.Decode(b)
	if fault != wire.NoFault || p.Chunk != n || p.Epoch != e.Epoch {
		return // overwritten by who breaks the rule of the window
	}
	p.payload, p.whole = payload, p.PayloadSize()
	switch p.Type {
	case wire.Contribution:
		if p.below = true; int(p.Child) < len(e.Children) {
			c.contribution(now, &p, out)
		}
	case wire.Result:
		c.result(&p, out)
	default: // the fast path holds no others
	}
}

// inUse renews the lease of an epoch of which the fast path has taken packets.
func (e *epoch) inUse(now core.Time) bool {
	if e.FastPath == nil || e.ended {
		return false
	}
	n := e.FastPath.Taken()
	if n == e.taken {
		return false
	}
	e.taken = n
	e.renew(now)
	return true
}
