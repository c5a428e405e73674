package forming

import (
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// Period is the time between two messages to a neighbour that only report who is
// still missing.
const Period = time.Second

// NoParent is the parent of the lowest rank.
const NoParent = -1

// Input is one input: the connection to the neighbour From is new, or, if Missing
// is not nil, From has sent that.
type Input struct {
	From    uint32
	Missing *wire.Missing
}

// Send is a frame for a neighbour. If the connection is down it may be dropped.
type Send struct {
	To    uint32
	Frame []byte
}

// Output is what a step brings about. The caller owns and resets it.
type Output struct {
	Sends  []Send
	Formed bool // all members are there: once
}

// Reset empties o and keeps its memory.
func (o *Output) Reset() { *o = Output{Sends: o.Sends[:0]} }

// child is what the member knows of a child in the tree of hosts. What is missing
// is, until the child has reported, itself.
type child struct {
	rank    uint32
	missing wire.Missing
	up      bool // a connection has been there
}

// Core is one member. Its methods are not safe for concurrent use.
type Core struct {
	parent   int
	children []child
	formed   bool

	life    uint64       // the lowest rank's; 0: it is not known
	setting []byte       // likewise
	above   wire.Missing // who is missing, as the parent says
	heard   bool         // the parent has said that
	changed bool         // what neighbours are given, since they were
	next    core.Time    // when they may be sent to
	out     *Output
}

// New returns a member that has met nobody. The lowest rank's life and setting become everybody's.
func New(parent int, children []int, life uint64, setting []byte) *Core {
	c := &Core{parent: parent}
	if parent == NoParent {
		c.life, c.setting = life, setting
	}
	for _, rank := range children {
		c.children = append(c.children, child{rank: uint32(rank), missing: wire.Missing{Ranks: []uint32{uint32(rank)}}})
	}
	return c
}

// Missing returns who is not there, as far as the member knows: of all members if
// its parent has reported, else of those beneath it. A rank stands for all beneath
// it.
func (c *Core) Missing() wire.Missing {
	if c.heard {
		return c.above
	}
	return c.beneath()
}

// Life returns the number by which the members distinguish this communicator from others of the same
// name, once it is formed.
func (c *Core) Life() uint64 { return c.life }

// Setting returns by what the members choose the ways of operations, once it is formed.
func (c *Core) Setting() []byte { return c.setting }

// Deadline returns the next moment at which the member wants to be stepped.
func (c *Core) Deadline() core.Time {
	if c.changed && !c.formed {
		return c.next
	}
	return core.Never
}

// Step takes inputs in order.
func (c *Core) Step(now core.Time, in []Input, out *Output) {
	c.out = out
	for i := range in {
		c.take(&in[i])
	}
	if c.changed && !c.formed && now >= c.next {
		c.changed, c.next = false, now.Add(Period)
		c.sendUp()
		for i := range c.children {
			c.sendDown(&c.children[i])
		}
	}
	c.out = nil
}

func (c *Core) take(in *Input) {
	if c.parent != NoParent && in.From == uint32(c.parent) {
		c.fromParent(in.Missing)
		return
	}
	i := slices.IndexFunc(c.children, func(k child) bool { return k.rank == in.From })
	if i < 0 {
		return
	}
	k := &c.children[i]
	if in.Missing == nil {
		k.up = true
		c.sendDown(k)
		return
	}
	if c.formed {
		return
	}
	c.replace(&k.missing, in.Missing)
	if slices.ContainsFunc(c.children, func(k child) bool { return len(k.missing.Ranks) > 0 }) {
		return
	}
	if c.parent == NoParent {
		c.form()
	} else {
		c.sendUp()
	}
}

// fromParent takes the news of a connection to the parent, or what that has sent.
func (c *Core) fromParent(m *wire.Missing) {
	switch {
	case c.formed:
	case m == nil:
		c.sendUp()
	case len(m.Ranks) == 0:
		c.life, c.setting = m.Life, m.Setting
		c.form()
	default:
		c.heard = true
		c.replace(&c.above, m)
	}
}

// replace notes what a neighbour has reported, and whether it is news for others.
func (c *Core) replace(known, reported *wire.Missing) {
	c.changed = c.changed || known.More != reported.More || !slices.Equal(known.Ranks, reported.Ranks)
	*known = *reported
}

// form reports those beneath that all are there.
func (c *Core) form() {
	c.formed, c.out.Formed = true, true
	c.above = wire.Missing{}
	for i := range c.children {
		c.children[i].missing = wire.Missing{}
		c.sendDown(&c.children[i])
	}
}

// beneath returns who is missing beneath the member.
func (c *Core) beneath() (m wire.Missing) {
	for i := range c.children {
		k := &c.children[i].missing
		room := min(len(k.Ranks), wire.MaxMissing-len(m.Ranks))
		m.Ranks = append(m.Ranks, k.Ranks[:room]...)
		m.More = m.More || k.More || room < len(k.Ranks)
	}
	return m
}

func (c *Core) sendUp() {
	if c.parent != NoParent {
		m := c.beneath()
		c.out.Sends = append(c.out.Sends, Send{uint32(c.parent), m.Append(nil)})
	}
}

// sendDown reports to a child that was met who is missing in all, if that is known.
func (c *Core) sendDown(k *child) {
	m := c.above
	m.Life = c.life
	if c.formed {
		m.Setting = c.setting
	}
	if c.parent == NoParent && !c.formed {
		m = c.beneath()
		m.Life = c.life
	}
	if k.up && (c.formed || len(m.Ranks) > 0) {
		c.out.Sends = append(c.out.Sends, Send{k.rank, m.Append(nil)})
	}
}
