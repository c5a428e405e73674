package switchreduce

import (
	"encoding/binary"
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
	Size   int            // of a Packet, if not 0: it is packets of so many bytes each, but for the last
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
	Retired []uint32 // epochs of which a Retire was taken: nothing is sent in them after this
	Begun   []uint32 // epochs of which a packet was admitted for the first time: their fast paths may take packets from now on, and no earlier one's

	// TakesBatches, which the caller sets and Reset keeps, says that it sends Batches,
	// too, after the Sends. Otherwise there are none: each of their packets is a
	// Send, as one is that has no other beside it.
	TakesBatches bool
	Batches      []Batch
}

// Reset empties o and keeps its memory.
func (o *Output) Reset() {
	*o = Output{Sends: o.Sends[:0], Expired: o.Expired[:0], Retired: o.Retired[:0], Begun: o.Begun[:0], TakesBatches: o.TakesBatches, Batches: o.Batches[:0]}
}

// Core is the switch side of one tree of one group, in all of its epochs. It
// is not safe for concurrent use.
type Core struct {
	// epochs are in rising order. All before the newest that has begun have
	// ended.
	epochs []epoch
	group  uint32 // of every epoch; meaningless while newest is 0
	newest uint32 // largest epoch ever installed, 0: none

	// slots has 2W places of the largest window installed. Number n of an
	// epoch with window W is served by place n mod 2W; so epochs of different
	// windows share the places, and the later one takes them over.
	slots
	memory

	settled   uint32 // all members have every result before this number
	isSettled bool
	forgets   bool // the next Step forgets what is before

	adopting bool   // a chunk from the fast path, whose partial waits until all of it is there
	step     uint64 // serial number of the present Step
	borrowed []borrowed
	queue    queue
	last     template

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
	if c.forgets {
		c.forgets = false
		c.Forget(c.settled)
	}
	for i := range in {
		switch in[i].Kind {
		case Packet:
			c.take(now, &in[i], out)
		case Install:
			c.change(out)
			c.install(now, in[i].Config, out)
		case Retire:
			c.change(out)
			c.retire(in[i].Epoch)
			out.Retired = append(out.Retired, in[i].Epoch)
		}
	}
	c.last.payload = nil // it was lent
	c.repay()
	c.emit(out)
	c.expire(now, out)
}

// take receives a packet, or each of several.
func (c *Core) take(now core.Time, in *Input, out *Output) {
	if in.Size == 0 {
		c.receive(now, in, out)
		return
	}
	one := Input{From: in.From}
	for rest := in.Packet; len(rest) > 0; rest = rest[len(one.Packet):] {
		n := min(in.Size, len(rest))
		one.Packet = rest[:n:n]
		c.receive(now, &one, out)
	}
}

// change must be called before epochs are changed: what is kept about them is
// no longer true.
func (c *Core) change(out *Output) {
	c.repay()
	c.emit(out)
	c.last.epoch = nil
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
	whole   int  // bytes of the chunk's payload in a packet that carries it
	below   bool // it comes from a child, number Header.Child
}

func (c *Core) drop(d Drop) { c.counters.Drops[d]++ }

// receive admits a packet and hands it to the rule for its type.
func (c *Core) receive(now core.Time, in *Input, out *Output) {
	p := &c.last.packet
	if !c.last.fits(in) && !c.admit(in, out) {
		return
	}
	e := p.epoch
	e.renew(now)
	e.took(p)
	if !e.begun {
		e.begun = true
		out.Begun = append(out.Begun, e.Epoch)
	}
	if e.FastPath != nil && !c.own(now, e, p, out) {
		c.drop(DropLate)
		return
	}
	switch p.Type {
	case wire.Contribution:
		c.contribution(now, p, out)
	case wire.Probe:
		c.probe(now, p, out)
	case wire.Error:
		c.errorPacket(now, p, out)
	case wire.Result:
		c.result(p, out)
	default:
		c.answer(now, p, out)
	}
	if p.below {
		c.keepAlive(now, e, out)
	}
}

// admit reads a packet into c.last, or counts why it must be dropped.
func (c *Core) admit(in *Input, out *Output) bool {
	p := &c.last.packet
	p.epoch = nil // until it is admitted, no other packet is like this one
	payload, fault := p.Decode(in.Packet)
	if fault != wire.NoFault {
		c.counters.Faults[fault]++
		c.drop(DropFault)
		return false
	}
	p.payload, p.whole = payload, p.PayloadSize()
	e, d := c.judge(in.From, p)
	if d != dropCount {
		c.drop(d)
		return false
	}
	p.epoch = c.begin(e, out)
	c.last.keep(in)
	return true
}

// template is the packet that was admitted last. Packets come in batches, each
// like the one before it but for its number and payload: then only these are
// read. It is of no use any more when epochs have changed.
type template struct {
	packet
	from netip.AddrPort
	size int
	head [wire.HeaderSize]byte
}

// chunkAt is where a header has its chunk number.
const chunkAt = 20

func (t *template) keep(in *Input) {
	t.from, t.size = in.From, len(in.Packet)
	copy(t.head[:], in.Packet)
}

// fits reports whether in is like the packet before, and makes that of it.
func (t *template) fits(in *Input) bool {
	if t.epoch == nil || len(in.Packet) != t.size || in.From != t.from {
		return false
	}
	a, b := (*[wire.HeaderSize]byte)(in.Packet), &t.head
	le := binary.LittleEndian
	if le.Uint64(a[0:]) != le.Uint64(b[0:]) || le.Uint64(a[8:]) != le.Uint64(b[8:]) || le.Uint32(a[16:]) != le.Uint32(b[16:]) ||
		le.Uint64(a[24:]) != le.Uint64(b[24:]) || le.Uint64(a[32:]) != le.Uint64(b[32:]) {
		return false
	}
	t.Chunk = binary.BigEndian.Uint32(a[chunkAt:])
	t.payload = in.Packet[wire.HeaderSize:]
	return true
}

// judge returns p's epoch and the first reason to drop p, or dropCount.
func (c *Core) judge(from netip.AddrPort, p *packet) (*epoch, Drop) {
	switch {
	case c.newest == 0 || p.Group != c.group:
		return nil, DropGroup
	case p.Epoch > c.newest:
		return nil, DropEpoch
	}
	e := c.find(p.Epoch)
	if e == nil || e.ended {
		return nil, DropStale
	}
	return e, e.sender(from, p)
}

// sender returns dropCount if p comes from the address from, and notes on which
// side of this switch that is.
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
		return e.proven(p, len(e.Children), e.Cookie)
	}
	if i := int(p.Child); i < len(e.Children) && e.Children[i].Addr == from {
		return e.proven(p, i, e.Children[i].Cookie)
	}
	if slices.ContainsFunc(e.Children, func(c Child) bool { return c.Addr == from }) {
		return DropChild
	}
	return DropAddress
}

// proven returns dropCount if p has the cookie of the neighbour that it claims to come
// from: a child, or the parent if that is len(e.Children).
func (e *epoch) proven(p *packet, neighbour int, cookie wire.Cookie) Drop {
	if p.Cookie != cookie {
		e.traffic[neighbour].Forged++
		return DropCookie
	}
	return dropCount
}
