package attribute

import (
	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/attributes"
)

// Kind is the kind of an Input.
type Kind uint8

// The kinds of inputs, with the fields that they use. Those of one neighbour
// come in the order in which its connection brought them.
const (
	NeighbourUp   Kind = iota + 1 // Life: there is a connection to it
	NeighbourDown                 // Life: there is none any more
	Joined                        // Life: is in the view
	Left                          // Life: is not
	Message                       // Life: of the sender; Message
)

// Input is one input.
type Input struct {
	Kind    Kind
	Life    attributes.Life
	Message attributes.Message
}

// Send is a message to a neighbour. It must not be changed: others may be sent
// the same, and entries are the core's own.
type Send struct {
	To      attributes.Life
	Message attributes.Message
}

// Notice reports that the map of a member in the view has changed: it is now at
// Version, and before was at From, 0 being the empty map.
type Notice struct {
	Life          attributes.Life
	From, Version uint64
	Keys          []string // written or deleted since From, in the order of their versions
}

// Output is what a step brings about. The caller owns and resets it.
type Output struct {
	Sends   []Send
	Notices []Notice
}

// Reset empties o and keeps its memory.
func (o *Output) Reset() { *o = Output{Sends: o.Sends[:0], Notices: o.Notices[:0]} }

// Core is one member's part in the replication. Its methods are not safe for
// concurrent use.
type Core struct {
	cfg Config

	view       core.Table[attributes.Life] // self included
	slots      map[attributes.Life]int32   // of those in the view of whose maps something is known, or pending
	replicas   []replica                   // by slot; 0 is self
	free       []int32                     // slots of members that left
	neighbours []attributes.Life           // in the order in which they came

	changed []int32   // slots whose version may be newer than was sent
	next    core.Time // when digests are due that go one in a period: bursts are ahead of it

	pending pending
	wants   []want // of this step
}

// want is a map to be asked for.
type want struct {
	of   attributes.Life // a neighbour; 0 for all
	life attributes.Life
}

// New returns the part of a member that knows nobody yet.
func New(cfg Config) (*Core, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c := &Core{
		cfg:      cfg,
		slots:    map[attributes.Life]int32{cfg.Self: 0},
		replicas: []replica{{life: cfg.Self}},
		pending:  pending{limit: cfg.PendingOffers, memory: cfg.Memory},
	}
	c.view.Add(cfg.Self, numberOf)
	return c, nil
}

// Deadline returns when the next digest is due, core.Never when there is nothing
// to report.
func (c *Core) Deadline() core.Time {
	if len(c.changed) == 0 {
		return core.Never
	}
	return c.due()
}

// due returns when a digest may go: a token bucket, as the time at which it will
// be full (Turner, New Directions in Communications, 1986).
func (c *Core) due() core.Time {
	return c.next - core.Time(c.cfg.Burst-1)*core.Time(c.cfg.Period)
}

// Step takes inputs in order, and sends the digest when it is due.
func (c *Core) Step(now core.Time, in []Input, out *Output) {
	for i := range in {
		c.take(now, &in[i], out)
	}
	c.request(out)
	c.update(now, out)
}

func (c *Core) take(now core.Time, in *Input, out *Output) {
	switch in.Kind {
	case NeighbourUp:
		c.neighbourUp(in.Life, out)
	case NeighbourDown:
		c.neighbourDown(in.Life)
	case Joined:
		c.joined(now, in.Life)
	case Left:
		c.left(now, in.Life)
	case Message:
		switch m := in.Message.(type) {
		case *attributes.Digest:
			c.digest(now, in.Life, m)
		case *attributes.Request:
			c.reply(in.Life, m, out)
		case *attributes.Reply:
			c.replied(in.Life, m, out)
		}
	}
}

// joined begins an empty replica. What was missed about it while it was not in
// the view is made good.
func (c *Core) joined(now core.Time, life attributes.Life) {
	if c.Has(life) || life == 0 {
		return
	}
	c.view.Add(life, numberOf)
	owed, any := c.pending.settle(now, life)
	switch {
	case !any:
	case c.isNeighbour(owed.from):
		c.offered(owed.from, attributes.Map{Life: life, Version: owed.version})
	default:
		c.wants = append(c.wants, want{life: life})
	}
}

// left deletes a replica.
func (c *Core) left(now core.Time, life attributes.Life) {
	if !c.Has(life) || life == c.cfg.Self {
		return
	}
	c.view.Remove(life, numberOf)
	c.pending.add(now, life, pendingOffer{})
	if slot, held := c.slots[life]; held {
		delete(c.slots, life)
		c.replicas[slot] = replica{listed: c.replicas[slot].listed}
		c.free = append(c.free, slot)
	}
}

// slot returns the slot of a member in the view, and makes one if it has none.
func (c *Core) slot(life attributes.Life) int32 {
	slot, held := c.slots[life]
	if held {
		return slot
	}
	if n := len(c.free); n > 0 {
		slot, c.free = c.free[n-1], c.free[:n-1]
		c.replicas[slot] = replica{life: life, listed: c.replicas[slot].listed}
	} else {
		slot = int32(len(c.replicas))
		c.replicas = append(c.replicas, replica{life: life})
	}
	c.slots[life] = slot
	return slot
}

// replica returns what is held of a member's map; nil where nothing is.
func (c *Core) replica(life attributes.Life) *replica {
	if slot, held := c.slots[life]; held {
		return &c.replicas[slot]
	}
	return nil
}
