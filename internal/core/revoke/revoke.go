package revoke

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/tributary-fabric/tributary/internal/wire"
)

// Config is a member's place, and its communicator.
type Config struct {
	Rank  uint32
	Size  int // of the communicator
	Group [32]byte
}

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	if c.Size < 1 || c.Size > wire.MaxRank+1 || int64(c.Rank) >= int64(c.Size) {
		return fmt.Errorf("revoke: %w: rank %d of %d", errConfig, c.Rank, c.Size)
	}
	return nil
}

var errConfig = errors.New("invalid configuration")

// InputKind is what an input is.
type InputKind uint8

// The kinds of inputs, with the fields that they use.
const (
	Formed    InputKind = iota // Life: all members are there, and this is the communicator's
	Revoke                     // From, Reason: From has revoked it: this member, or another as it knows otherwise
	Message                    // From, Bytes: a notice
	Connected                  // From: the connection with that member is new
	Dead                       // From: that member is dead, or is to count as dead
)

// Input is what happens at a member.
type Input struct {
	Kind   InputKind
	From   uint32
	Life   uint64
	Reason uint32
	Bytes  []byte // only looked at during the step
}

// Send is a notice for a neighbour. Its bytes are shared and must not be changed.
type Send struct {
	To    uint32
	Bytes []byte
}

// Output is what a step brings about. The caller owns and resets it. It sends before it acts on
// Delivered.
type Output struct {
	Sends     []Send
	Delivered bool // the communicator is revoked, by what Core.Notice returns
	Settled   bool // no neighbour needs the notice any more
	Refused   int  // messages
}

// Reset empties o and keeps its memory.
func (o *Output) Reset() { *o = Output{Sends: o.Sends[:0]} }

// state is a member's.
type state uint8

const (
	forming state = iota
	idle
	revoked
)

// Core is one member. Its methods are not safe for concurrent use. Its size does not depend on
// that of the communicator.
type Core struct {
	cfg    Config
	state  state
	notice Notice // revoked: by which it is; idle: Of is known

	// Neighbours, by their place: those that have sent the notice, and those that are dead.
	heard, dead places
	early       [2]early // forming: the newest first
	settled     bool

	out *Output
}

// early is a notice that came before the communicator was formed.
type early struct {
	notice Notice // Life is 0: there is none
	heard  places
}

// places is a set of neighbours: of those 2^k above bit k, and of others, 2^k below, bit 32+k.
type places uint64

func placeOf(n int, v, w uint32) places {
	p := bits.TrailingZeros(uint(lengthOf(n, v, w)))
	if !isLength(above(n, v, w)) {
		p += 32
	}
	return 1 << p
}

// New returns a member of a communicator that is being formed.
func New(cfg Config) (*Core, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Core{cfg: cfg}, nil
}

// Notice returns by what the communicator is revoked; ok is false: it is not.
func (c *Core) Notice() (n Notice, ok bool) { return c.notice, c.state == revoked }

// IsAwaited reports whether a member is a neighbour that may need the notice: the driver is to keep
// up a connection with it.
func (c *Core) IsAwaited(rank uint32) bool {
	return c.state == revoked && c.isNeighbour(rank) && (c.heard|c.dead)&c.place(rank) == 0
}

// Step takes inputs in order.
func (c *Core) Step(in []Input, out *Output) {
	c.out = out
	for i := range in {
		x := &in[i]
		switch x.Kind {
		case Formed:
			c.formed(x.Life)
		case Revoke:
			if int64(x.From) < int64(c.cfg.Size) && c.state == idle {
				c.revoke(Notice{c.notice.Of, x.From, x.Reason}, 0)
			}
		case Message:
			c.message(x.From, x.Bytes)
		case Connected:
			if c.IsAwaited(x.From) {
				c.out.Sends = append(c.out.Sends, Send{x.From, c.notice.Append(nil)})
			}
		case Dead:
			if c.isNeighbour(x.From) {
				c.dead |= c.place(x.From)
			}
		}
	}
	if c.state == revoked && !c.settled && bits.OnesCount64(uint64(c.heard|c.dead)) == Degree(c.cfg.Size) {
		c.settled, c.out.Settled = true, true
	}
	c.out = nil
}

func (c *Core) isNeighbour(rank uint32) bool {
	return int64(rank) < int64(c.cfg.Size) && AreNeighbours(c.cfg.Size, c.cfg.Rank, rank)
}

func (c *Core) place(rank uint32) places { return placeOf(c.cfg.Size, c.cfg.Rank, rank) }

// formed takes the communicator's life.
func (c *Core) formed(life uint64) {
	if c.state != forming || life == 0 {
		return
	}
	c.state, c.notice.Of = idle, Identity{c.cfg.Group, life}
	for _, e := range c.early {
		if e.notice.Of.Life == life {
			c.heard = e.heard
			c.revoke(e.notice, 0)
		}
	}
}

// message takes bytes of another member.
func (c *Core) message(from uint32, b []byte) {
	n, err := Read(b)
	switch {
	case err != nil, !c.isNeighbour(from), n.Of.Group != c.cfg.Group, int64(n.By) >= int64(c.cfg.Size):
		c.out.Refused++
	case c.state == forming:
		c.keep(n, c.place(from))
	case n.Of != c.notice.Of:
		c.out.Refused++
	default:
		c.heard |= c.place(from)
		if c.state == idle {
			c.revoke(n, lengthOf(c.cfg.Size, c.cfg.Rank, from)/4)
		}
	}
}

// keep notes a notice until the member knows whether it is of its communicator.
func (c *Core) keep(n Notice, from places) {
	k := &c.early
	if k[0].notice.Of != n.Of {
		k[0], k[1] = k[1], k[0]
	}
	if k[0].notice.Of != n.Of {
		k[0] = early{notice: n}
	}
	k[0].heard |= from
}

// revoke sends the notice to all neighbours, and delivers it. A distance is a sum and difference of
// powers of two of which no two follow each other. So the links by which others are reached through
// this member are at most a quarter as long as that by which the notice has come: these are first.
func (c *Core) revoke(n Notice, first int) {
	c.state, c.notice = revoked, n
	b := n.Append(nil)
	for rank := range Neighbours(c.cfg.Size, c.cfg.Rank, first) {
		if c.dead&c.place(rank) == 0 {
			c.out.Sends = append(c.out.Sends, Send{rank, b})
		}
	}
	c.out.Delivered = true
}
