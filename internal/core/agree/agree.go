package agree

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// Config is a member's place. SlowAfter is how long an agreement takes until members find out for
// whom they wait; 0: never.
type Config struct {
	Rank      uint32
	Size      int // of the group
	SlowAfter time.Duration
}

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	if c.Size < 1 || c.Size > wire.MaxRank || int64(c.Rank) >= int64(c.Size) || c.SlowAfter < 0 {
		return fmt.Errorf("agree: %w: rank %d of %d, slow after %v", errConfig, c.Rank, c.Size, c.SlowAfter)
	}
	return nil
}

var errConfig = errors.New("invalid configuration")

// InputKind is what an input is.
type InputKind uint8

// The kinds of inputs.
const (
	Open    InputKind = iota // take part in the next agreement, without flags as yet: Disturbed is reported
	Start                    // give flags for the next agreement
	Message                  // Bytes have come from Rank
	Dead                     // Rank is dead, or is to count as dead
	Quit                     // this member is to count as dead, and answers so from now on
)

// Input is what happens at a member.
type Input struct {
	Kind  InputKind
	Rank  uint32
	Flags uint64
	Bytes []byte // only looked at during the step
}

// Send is a message for another member.
type Send struct {
	To    uint32
	Bytes []byte
}

// Decision is what an agreement has come to.
type Decision struct {
	Number uint32
	Value
}

// Output is what a step brings about. The caller owns and resets it.
type Output struct {
	Sends   []Send
	Decided []Decision
	// Watch are members whose death has to be reported from now on.
	Watch []uint32
	// Disturbed: somebody has died before this member has given its flags for the next agreement,
	// in which it takes part.
	Disturbed bool
	// Expelled: others hold this member dead, or are to. It takes no more part.
	Expelled  bool
	Malformed int // messages
}

// Reset empties o and keeps its memory.
func (o *Output) Reset() {
	*o = Output{Sends: o.Sends[:0], Decided: o.Decided[:0], Watch: o.Watch[:0]}
}

// mostDismissals are the answers to a member that is held dead, or that speaks to one that is gone:
// more than it can have sent before it reads the first, and some that may be lost.
const mostDismissals = 256

// Core is one member. Its methods are not safe for concurrent use.
type Core struct {
	cfg  Config
	dead set
	// watched are the members that are to be watched: of every wave its children, and the one below
	// this member, so at most log2(n) + 1 for each death.
	watched set
	heard   set    // members that have sent a message
	last    *round // decided; nil: none is
	next    *round // nil: it is not open
	// isExpelled: others hold this member dead, and it says nothing more; or isGone: but that.
	isExpelled, isGone bool
	dismissals         map[uint32]int // to members that are dead here, or to which this one is gone

	now core.Time
	out *Output
}

// New returns a member.
func New(cfg Config) (*Core, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Core{cfg: cfg, dead: newSet(cfg.Size), watched: newSet(cfg.Size), heard: newSet(cfg.Size)}, nil
}

// Number returns the number of the next agreement.
func (c *Core) Number() uint32 {
	if c.last == nil {
		return 1
	}
	return c.last.number + 1
}

// HasStarted reports whether this member has given its flags for the next agreement.
func (c *Core) HasStarted() bool { return c.next != nil && c.next.isStarted }

// IsDead reports whether a member is known to be dead.
func (c *Core) IsDead(rank uint32) bool { return c.dead.has(rank) }

// Deadline returns when the core is to be stepped without input.
func (c *Core) Deadline() core.Time {
	if c.next == nil || c.isExpelled {
		return core.Never
	}
	return c.next.slowAt
}

// Step takes inputs in order.
func (c *Core) Step(now core.Time, in []Input, out *Output) {
	c.now, c.out = now, out
	for i := range in {
		x := &in[i]
		if c.isGone && x.Kind == Message {
			c.refer(x.Rank, x.Bytes)
		}
		if c.isExpelled {
			continue
		}
		switch x.Kind {
		case Open:
			c.open()
		case Start:
			c.start(x.Flags)
		case Message:
			c.message(x.Rank, x.Bytes)
		case Dead:
			if int64(x.Rank) < int64(c.cfg.Size) && x.Rank != c.cfg.Rank {
				c.died(x.Rank)
			}
		case Quit:
			c.quit()
		}
	}
	if c.next != nil && now >= c.next.slowAt && !c.isExpelled {
		c.callLate(c.next)
	}
	c.out = nil
}

// open returns the next agreement.
func (c *Core) open() *round {
	if c.next == nil {
		r := &round{number: c.Number(), slowAt: core.Never, pause: c.cfg.SlowAfter}
		if c.last != nil {
			r.before = c.last.lock.value
		}
		if c.cfg.SlowAfter > 0 {
			r.slowAt = c.now.Add(c.cfg.SlowAfter)
		}
		c.next = r
		for _, rank := range r.before.Failed {
			c.dead.add(rank)
		}
		if c.dead.count > len(r.before.Failed) {
			c.disturb(r)
		}
		c.imply(r)
	}
	return c.next
}

func (c *Core) start(flags uint64) {
	r := c.open()
	if !r.isStarted {
		r.isStarted, r.flags = true, flags
		c.advance(r)
	}
}

// died takes that a member is dead.
func (c *Core) died(rank uint32) {
	if !c.dead.add(rank) {
		return
	}
	for _, r := range []*round{c.last, c.next} {
		if r == nil {
			continue
		}
		if r == c.next { // which may be decided by what follows
			c.disturb(r)
		}
		switch {
		case r.takes(rank):
			c.refuse(r)
		case r.ballot != c.cfg.Rank && c.dead.holdsBelow(c.cfg.Rank):
			c.lead(r)
		}
	}
	c.watchBelow()
}

// watchBelow has the next lower member be watched, whose place this one may have to take.
func (c *Core) watchBelow() {
	if c.last == nil && c.next == nil {
		return
	}
	if rank, ok := c.dead.before(c.cfg.Rank); ok {
		c.watch(rank)
	}
}

func (c *Core) watch(rank uint32) {
	if c.watched.add(rank) {
		c.out.Watch = append(c.out.Watch, rank)
	}
}

// disturb reports that somebody has died before this member has started.
func (c *Core) disturb(r *round) {
	if !r.isStarted && !r.isDecided() {
		c.out.Disturbed = true
	}
}

// quit ends this member's part. Who has sent a message before may wait for the answer.
func (c *Core) quit() {
	c.isGone, c.isExpelled, c.out.Expelled = true, true, true
	for _, rank := range c.heard.list() {
		c.send(rank, &message{kind: Gone})
	}
}

// refer answers whatever another member has sent by that this one is gone.
func (c *Core) refer(to uint32, b []byte) {
	m, err := read(b, c.cfg.Size)
	if err != nil || int64(to) >= int64(c.cfg.Size) || to == c.cfg.Rank {
		c.out.Malformed++
	} else if m.kind != Gone && m.kind != Expelled {
		c.dismiss(to, Gone)
	}
}

// dismiss answers a member that is to take no more part, or that this one takes none.
func (c *Core) dismiss(to uint32, k Kind) {
	if c.dismissals == nil {
		c.dismissals = map[uint32]int{}
	}
	if c.dismissals[to]++; c.dismissals[to] <= mostDismissals {
		c.send(to, &message{kind: k})
	}
}

// message takes bytes from another member.
func (c *Core) message(from uint32, b []byte) {
	if int64(from) >= int64(c.cfg.Size) || from == c.cfg.Rank {
		c.out.Malformed++
		return
	}
	m, err := read(b, c.cfg.Size)
	if err == nil {
		c.heard.add(from)
	}
	switch {
	case err != nil:
		c.out.Malformed++
	case m.kind == Ping:
	case m.kind == Expelled:
		c.isExpelled, c.out.Expelled = true, true
	case m.kind == Gone:
		c.died(from)
	case c.dead.has(from):
		c.dismiss(from, Expelled)
	default:
		c.of(from, &m)
	}
}

// of takes a message of an agreement.
func (c *Core) of(from uint32, m *message) {
	if slices.Contains(m.before.Failed, c.cfg.Rank) {
		c.isExpelled, c.out.Expelled = true, true
		return
	}
	if c.next != nil && c.next.isStarted && m.number == c.next.number+1 {
		c.next.lock = locked{is: true, value: m.before} // the sender has decided it
		c.decide(c.next)
	}
	var r *round
	switch {
	case m.number == c.Number():
		r = c.open()
		if !equal(r.before, m.before) {
			c.out.Malformed++
			return
		}
	case c.last != nil && m.number == c.last.number:
		r = c.last
	case m.number < c.Number(): // all have decided it
		return
	default:
		c.out.Malformed++
		return
	}
	if slices.Contains(m.failed, c.cfg.Rank) && m.kind != Late {
		c.isExpelled, c.out.Expelled = true, true
		return
	}
	switch m.kind {
	case Ack, Nak:
		c.answered(r, from, m)
	case Late:
		c.isLate(r, from, m)
	default:
		c.command(r, from, m)
	}
}

func equal(a, b Value) bool { return a.Flags == b.Flags && slices.Equal(a.Failed, b.Failed) }

// learn takes what another member knows of deaths.
func (c *Core) learn(failed []uint32) {
	for _, rank := range failed {
		c.died(rank)
	}
}

func (c *Core) send(to uint32, m *message) {
	c.out.Sends = append(c.out.Sends, Send{to, m.bytes(c.cfg.Size)})
}
