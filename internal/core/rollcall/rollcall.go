package rollcall

import (
	"slices"

	"github.com/tributary-fabric/tributary/internal/wire"
)

const (
	// Positions are those that a member remembers at once.
	Positions = 16
	// MaxLate are the ranks that are named as late, at most.
	MaxLate = 8
)

// Record is what this member has called at a position.
type Record struct {
	Tag         uint64
	IsCalled    bool // it has called
	IsForgotten bool // it has, too long ago to know what
}

// Input is a message of a neighbour: one of Waiting and Late is set. Or this member itself waits.
type Input struct {
	From    uint32 // this member's own rank: it waits
	Waiting *wire.Waiting
	Late    *wire.Late
	Own     Record // of that position
}

// Send is a frame for a neighbour.
type Send struct {
	To    uint32
	Frame []byte
}

// Output is what a step brings about. The caller owns and resets it.
type Output struct {
	Sends     []Send
	Disagreed *[2]wire.Called // two members have called different operations
}

// Reset empties o and keeps its memory.
func (o *Output) Reset() { *o = Output{Sends: o.Sends[:0]} }

// position is what is known of one.
type position struct {
	number uint32
	round  uint8
	tags   []wire.Called
	late   []uint32
}

// Core is one member. Its methods are not safe for concurrent use.
type Core struct {
	rank       uint32
	neighbours []uint32
	positions  []position // by when they were first heard of
	out        *Output
}

// New returns a member with its neighbours in the tree of hosts.
func New(rank uint32, neighbours []uint32) *Core { return &Core{rank: rank, neighbours: neighbours} }

// Late returns the ranks that have not called the operation at a position, as far as is known.
func (c *Core) Late(number uint32) []uint32 {
	if p := c.find(number); p != nil {
		return slices.Clone(p.late)
	}
	return nil
}

func (c *Core) find(number uint32) *position {
	i := slices.IndexFunc(c.positions, func(p position) bool { return p.number == number })
	if i < 0 {
		return nil
	}
	return &c.positions[i]
}

// at returns what is known of a position, which may be nothing yet.
func (c *Core) at(number uint32) *position {
	if p := c.find(number); p != nil {
		return p
	}
	if len(c.positions) == Positions {
		c.positions = slices.Delete(c.positions, 0, 1)
	}
	c.positions = append(c.positions, position{number: number})
	return &c.positions[len(c.positions)-1]
}

// Step takes inputs in order.
func (c *Core) Step(in []Input, out *Output) {
	c.out = out
	for i := range in {
		x := &in[i]
		switch {
		case x.From != c.rank && !slices.Contains(c.neighbours, x.From):
		case x.Waiting != nil:
			c.waiting(x)
		case x.Late != nil:
			c.isLate(x.From, x.Late)
		}
	}
	c.out = nil
}

func (c *Core) waiting(x *Input) {
	w := x.Waiting
	p := c.at(w.Position)
	isLater := w.Round > p.round
	isKnown := slices.ContainsFunc(p.tags, func(k wire.Called) bool { return k.Tag == w.Tag })
	if !isLater && (isKnown || len(p.tags) == 2) {
		return
	}
	if isLater {
		p.round, p.late = w.Round, nil
	}
	if !isKnown && len(p.tags) < 2 {
		p.tags = append(p.tags, wire.Called{Rank: w.Rank, Tag: w.Tag})
	}
	switch own := (wire.Called{Rank: c.rank, Tag: x.Own.Tag}); {
	case x.Own.IsCalled && own.Tag != w.Tag:
		c.disagreed(own, wire.Called{Rank: w.Rank, Tag: w.Tag})
	case len(p.tags) == 2:
		c.disagreed(p.tags[0], p.tags[1])
	}
	c.spread(x.From, w.Append(nil))
	if !x.Own.IsCalled && !x.Own.IsForgotten && x.From != c.rank {
		c.isLate(c.rank, &wire.Late{Position: w.Position, Round: p.round, Rank: c.rank})
	}
}

func (c *Core) disagreed(a, b wire.Called) {
	if b.Rank < a.Rank {
		a, b = b, a
	}
	if c.out.Disagreed == nil {
		c.out.Disagreed = &[2]wire.Called{a, b}
	}
}

func (c *Core) isLate(from uint32, l *wire.Late) {
	p := c.at(l.Position)
	if l.Round > p.round {
		p.round, p.late = l.Round, nil
	}
	if l.Round < p.round || len(p.late) == MaxLate || slices.Contains(p.late, l.Rank) {
		return
	}
	p.late = append(p.late, l.Rank)
	slices.Sort(p.late)
	c.spread(from, l.Append(nil))
}

// spread sends a frame to all neighbours but one.
func (c *Core) spread(but uint32, frame []byte) {
	for _, to := range c.neighbours {
		if to != but {
			c.out.Sends = append(c.out.Sends, Send{to, frame})
		}
	}
}
