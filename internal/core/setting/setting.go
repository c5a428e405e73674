package setting

import (
	"bytes"
	"slices"

	"github.com/tributary-fabric/tributary/internal/wire"
)

// NoParent is the parent of the lowest rank.
const NoParent = -1

// Kind says what an Input is.
type Kind uint8

// The kinds of inputs.
const (
	Connected Kind = iota // the connection to the neighbour From is new
	Frame                 // From has sent Message
	Promise               // the member's own, in the round that it was asked in: Position
	Wish                  // of the lowest rank, for Value
)

// Input is one input.
type Input struct {
	Kind     Kind
	From     uint32
	Message  *wire.Setting
	Position uint32
	Value    []byte // not to be changed
}

// Send is a frame for a neighbour. If the connection is down it may be dropped.
type Send struct {
	To    uint32
	Frame []byte
}

// Decision says by what operations from a position on are chosen.
type Decision struct {
	Position uint32
	Value    []byte // not to be changed
}

// Output is what a step brings about. The caller owns and resets it.
type Output struct {
	Sends   []Send
	Asked   bool // the member is to promise, by its next input
	Decided []Decision
}

// Reset empties o and keeps its memory.
func (o *Output) Reset() { *o = Output{Sends: o.Sends[:0], Decided: o.Decided[:0]} }

// child is what a member knows of a child in the tree of hosts.
type child struct {
	rank     uint32
	round    uint32 // of its last promise
	position uint32
}

// Core is one member. Its methods are not safe for concurrent use.
type Core struct {
	parent   int
	children []child

	round    uint32 // the last that is known
	decided  uint32 // the last round that is; at most round
	position uint32 // of the last decision
	value    []byte // the setting

	hasOwn bool   // in round, while that is not decided
	own    uint32 // the member's promise
	wish   []byte // the lowest rank's
	out    *Output
}

// New returns a member with the setting that all begin with.
func New(parent int, children []int, value []byte) *Core {
	c := &Core{parent: parent, value: value, wish: value}
	for _, rank := range children {
		c.children = append(c.children, child{rank: uint32(rank)})
	}
	return c
}

// Step takes inputs in order.
func (c *Core) Step(in []Input, out *Output) {
	c.out = out
	for i := range in {
		c.take(&in[i])
	}
	c.out = nil
}

func (c *Core) take(in *Input) {
	switch in.Kind {
	case Connected:
		c.connected(in.From)
	case Frame:
		c.message(in.From, in.Message)
	case Promise:
		if c.isOpen() && !c.hasOwn {
			c.hasOwn, c.own = true, in.Position
			c.conclude()
		}
	case Wish:
		if c.wish = in.Value; c.parent == NoParent && !c.isOpen() {
			c.begin()
		}
	}
}

func (c *Core) isOpen() bool { return c.round != c.decided }

// begin begins a round, if the lowest rank wishes another setting.
func (c *Core) begin() {
	if !bytes.Equal(c.wish, c.value) {
		c.open(c.round + 1)
	}
}

// open has the member, and all beneath it, promise.
func (c *Core) open(round uint32) {
	c.round, c.hasOwn, c.out.Asked = round, false, true
	for i := range c.children {
		c.send(c.children[i].rank, wire.Setting{Round: round, Step: wire.SettingAsk})
	}
}

func (c *Core) message(from uint32, m *wire.Setting) {
	isParent := c.parent != NoParent && from == uint32(c.parent)
	i := slices.IndexFunc(c.children, func(k child) bool { return k.rank == from })
	switch {
	case isParent && m.Step == wire.SettingAsk && m.Round > c.round && !c.isOpen():
		c.open(m.Round)
	case isParent && m.Step == wire.SettingDecide && m.Round == c.round && c.hasPromised():
		c.decide(Decision{m.Position, m.Value})
	case i >= 0 && m.Step == wire.SettingPromise && m.Round == c.round && c.isOpen() && c.children[i].round < c.round:
		c.children[i].round, c.children[i].position = m.Round, m.Position
		c.conclude()
	}
}

// largest returns the largest position that the member and those beneath it have promised.
func (c *Core) largest() (position uint32, isComplete bool) {
	position = c.own
	for _, k := range c.children {
		if k.round != c.round {
			return 0, false
		}
		if int32(k.position-position) > 0 {
			position = k.position
		}
	}
	return position, c.hasOwn
}

// hasPromised reports whether the member waits for the decision of its round. What is decided
// without it is no decision.
func (c *Core) hasPromised() bool {
	_, isComplete := c.largest()
	return isComplete && c.isOpen()
}

// conclude goes on when all have promised.
func (c *Core) conclude() {
	position, isComplete := c.largest()
	switch {
	case !isComplete:
	case c.parent == NoParent:
		c.decide(Decision{position, c.wish})
		c.begin()
	default:
		c.send(uint32(c.parent), wire.Setting{Round: c.round, Step: wire.SettingPromise, Position: position})
	}
}

func (c *Core) decide(d Decision) {
	c.decided, c.position, c.value = c.round, d.Position, d.Value
	c.out.Decided = append(c.out.Decided, d)
	for i := range c.children {
		c.sendDecision(c.children[i].rank)
	}
}

func (c *Core) sendDecision(to uint32) {
	c.send(to, wire.Setting{Round: c.decided, Step: wire.SettingDecide, Position: c.position, Value: c.value})
}

// connected repeats to a neighbour what it may not know.
func (c *Core) connected(to uint32) {
	if c.parent != NoParent && to == uint32(c.parent) {
		if c.isOpen() {
			c.conclude()
		}
		return
	}
	i := slices.IndexFunc(c.children, func(k child) bool { return k.rank == to })
	if i < 0 {
		return
	}
	if c.decided > 0 {
		c.sendDecision(to)
	}
	if c.isOpen() && c.children[i].round < c.round {
		c.send(to, wire.Setting{Round: c.round, Step: wire.SettingAsk})
	}
}

func (c *Core) send(to uint32, m wire.Setting) {
	c.out.Sends = append(c.out.Sends, Send{to, m.Append(nil)})
}
