package aggregate

import (
	"net/netip"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// Kind is the kind of an Input.
type Kind uint8

// The kinds of input.
const (
	Packet  Kind = iota // From, Packet: a packet has come
	Install             // Config: an epoch may begin
	Retire              // Epoch: an epoch is over
)

// Input is one thing that happens to a core.
type Input struct {
	Kind   Kind
	From   netip.AddrPort // of a Packet; an IPv4 address not mapped into IPv6
	Packet []byte         // read during Step only
	Config *Config        // of an Install; read during Step only
	Epoch  uint32         // of a Retire
}

// Send is one packet to a child or to the parent.
type Send struct {
	To   netip.AddrPort
	Head [wire.HeaderSize]byte
	Body []byte // lent: unchanged until the next Step
}

// Output is what a step brings about. The caller owns and resets it.
type Output struct {
	Sends   []Send
	Expired []uint32 // epochs whose lease ran out: the core has dropped them
}

// Reset empties o and keeps its memory.
func (o *Output) Reset() {
	*o = Output{Sends: o.Sends[:0], Expired: o.Expired[:0]}
}

// Core is the switch side of one tree of one group, in all of its epochs. It
// is not safe for concurrent use.
type Core struct {
	// epochs are in rising order. All before the newest that has begun have
	// ended.
	epochs []epoch
	group  uint32 // of every epoch; meaningless while newest is 0
	tree   uint8  // of every epoch
	newest uint32 // largest epoch ever installed, 0: none

	// slots has 2W places of the largest window installed. Number n of an
	// epoch with window W is served by slots[n mod 2W]; so epochs of different
	// windows share the places, and the later one takes them over.
	slots []slot

	step   uint64   // serial number of the present Step
	lent   [][]byte // slot memory given up in this Step while a Send pointed to it
	spares [][]byte // slot memory to be used again
	inputs [][]byte // scratch: what the kernel reduces

	counters Counters
}

// New returns a core without an epoch, which drops every packet.
func New() *Core { return &Core{} }

// Counters returns what was counted so far.
func (c *Core) Counters() Counters { return c.counters }

// Step takes the batch in, appends to out what follows from it, and drops the
// epochs whose lease has run out by now. A packet renews its epoch's lease
// before that is looked at.
func (c *Core) Step(now core.Time, in []Input, out *Output) {
	c.step++
	c.reclaim()
	for i := range in {
		switch in[i].Kind {
		case Packet:
			c.receive(now, &in[i], out)
		case Install:
			c.install(now, in[i].Config, out)
		case Retire:
			c.retire(in[i].Epoch)
		}
	}
	c.expire(now, out)
}

// Deadline returns the next moment at which a lease runs out.
func (c *Core) Deadline() core.Time {
	t := core.Never
	for i := range c.epochs {
		t = t.Earlier(c.epochs[i].lease)
	}
	return t
}

// packet is an admitted packet.
type packet struct {
	wire.Header
	epoch   *epoch
	payload []byte
	below   bool // it comes from a child, number Header.Child
}

func (c *Core) drop(d Drop) { c.counters.Drops[d]++ }

// receive admits a packet and hands it to the rule for its type.
func (c *Core) receive(now core.Time, in *Input, out *Output) {
	var p packet
	if !c.admit(in, &p) {
		return
	}
	p.epoch = c.begin(p.epoch)
	p.epoch.renew(now)
	p.epoch.took(&p)
	switch p.Type {
	case wire.Contribution:
		c.contribution(now, &p, out)
	case wire.Probe:
		c.probe(now, &p, out)
	case wire.Error:
		c.errorPacket(now, &p, out)
	case wire.Result:
		c.result(&p, out)
	default:
		c.answer(now, &p, out)
	}
	if p.below {
		c.keepAlive(now, p.epoch, out)
	}
}

// admit reads a packet into p, or counts why it must be dropped.
func (c *Core) admit(in *Input, p *packet) bool {
	payload, fault := p.Decode(in.Packet)
	if fault != wire.NoFault {
		c.counters.Faults[fault]++
		c.drop(DropFault)
		return false
	}
	p.payload = payload
	if d := c.judge(in.From, p); d != dropCount {
		c.drop(d)
		return false
	}
	return true
}

// judge returns the first reason to drop p, or dropCount.
func (c *Core) judge(from netip.AddrPort, p *packet) Drop {
	switch {
	case c.newest == 0 || p.Group != c.group:
		return DropGroup
	case p.Tree != c.tree:
		return DropTree
	case p.Epoch > c.newest:
		return DropEpoch
	}
	e := c.find(p.Epoch)
	if e == nil || e.ended {
		return DropStale
	}
	if p.Cookie != e.Cookie {
		return DropCookie
	}
	p.epoch = e
	return e.sender(from, p)
}

// sender returns dropCount if p can come from the address from, and notes on
// which side of this switch that is.
func (e *epoch) sender(from netip.AddrPort, p *packet) Drop {
	p.below = p.Type == wire.Contribution || p.Type == wire.Probe ||
		p.Type == wire.Error && (e.root() || from != e.Parent)
	if !p.below {
		switch {
		case e.root() || from != e.Parent:
			return DropAddress
		case p.Child != e.Index:
			return DropChild
		}
		return dropCount
	}
	if i := int(p.Child); i < len(e.Children) && e.Children[i].Addr == from {
		return dropCount
	}
	if slices.ContainsFunc(e.Children, func(c Child) bool { return c.Addr == from }) {
		return DropChild
	}
	return DropAddress
}
