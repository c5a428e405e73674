package agree

import (
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// stamp orders the waves of an agreement: those of a later leader are later.
type stamp struct {
	ballot uint32 // the leader's rank
	wave   uint32 // 0: the implied one
}

func (s stamp) isAfter(o stamp) bool {
	return s.ballot > o.ballot || s.ballot == o.ballot && s.wave > o.wave
}

// child is one that has not answered a wave.
type child struct {
	rank uint32
	late []uint32 // whom it waits for itself; empty: it has not said
}

// round is one agreement at a member.
type round struct {
	number    uint32
	before    Value // the decision before it
	isStarted bool
	flags     uint64 // of this member
	// lock is the value that this member has stored. Once it is decided it does not change.
	lock locked

	// The latest wave that this member has heard of.
	stamp
	kind   Kind
	failed []uint32 // who is not in its tree
	// pending are children that have not answered: at most log2(n).
	pending []child
	// answered: the parent has an Ack or a Nak; at the leader: the next wave follows.
	isAnswered bool
	acked      uint64 // AND of the children's flags
	found      locked // what was locked below

	slowAt core.Time
	pause  time.Duration
	late   []uint32 // by the leader's word
}

func (r *round) isDecided() bool { return r.lock.isDecided }

// takes reports whether the wave waits for a child, which does not answer any more.
func (r *round) takes(rank uint32) bool {
	return slices.ContainsFunc(r.pending, func(k child) bool { return k.rank == rank })
}

// imply begins an agreement with the wave that nobody sends.
func (c *Core) imply(r *round) {
	t := newTree(c.cfg.Size, r.before.Failed)
	r.stamp, r.kind, r.failed, r.acked = stamp{ballot: t.root()}, Collect, r.before.Failed, ^uint64(0)
	switch {
	case c.dead.holdsBelow(c.cfg.Rank) && c.dead.count > len(r.failed):
		c.lead(r)
	default:
		c.spread(r, false)
	}
	c.watchBelow()
}

// lead begins this member's waves: it is the lowest that lives.
func (c *Core) lead(r *round) {
	if r.isDecided() {
		c.begin(r, Commit)
	} else {
		c.begin(r, Collect)
	}
}

// begin begins a wave of this member's.
func (c *Core) begin(r *round, k Kind) {
	wave := uint32(1)
	if r.ballot == c.cfg.Rank {
		wave = r.stamp.wave + 1
	}
	c.take(r, stamp{c.cfg.Rank, wave}, k, c.dead.list())
	c.spread(r, true)
}

// take makes a wave the latest.
func (c *Core) take(r *round, s stamp, k Kind, failed []uint32) {
	r.stamp, r.kind, r.failed = s, k, failed
	r.pending, r.isAnswered, r.acked, r.found = nil, false, ^uint64(0), locked{}
	r.late = nil
}

// spread passes a wave on to this member's children.
func (c *Core) spread(r *round, sends bool) {
	m := message{kind: r.kind, number: r.number, before: r.before, stamp: r.stamp, failed: r.failed}
	if r.kind != Collect {
		m.lock.value = r.lock.value
	}
	isDead := false
	for _, rank := range newTree(c.cfg.Size, r.failed).children(c.cfg.Rank) {
		if c.dead.has(rank) {
			isDead = true
			continue
		}
		r.pending = append(r.pending, child{rank: rank})
		c.watch(rank)
		if sends {
			c.send(rank, &m)
		}
	}
	if isDead {
		c.refuse(r)
	} else {
		c.advance(r)
	}
}

// command takes a wave from this member's parent.
func (c *Core) command(r *round, from uint32, m *message) {
	t := newTree(c.cfg.Size, m.failed)
	if m.wave == 0 || t.root() != m.ballot || m.ballot >= c.cfg.Rank || t.parent(c.cfg.Rank) != from {
		c.out.Malformed++
		return
	}
	c.learn(m.failed) // which may have this member lead the agreement before; in this one it has a leader
	if !m.stamp.isAfter(r.stamp) {
		return
	}
	if m.kind == Collect {
		c.disturb(r)
	}
	c.take(r, m.stamp, m.kind, m.failed)
	if m.kind != Collect && !r.isDecided() {
		r.lock = locked{is: true, value: m.lock.value}
	}
	if m.kind == Commit {
		c.decide(r)
	}
	c.spread(r, true)
}

// answered takes the answer of a child.
func (c *Core) answered(r *round, from uint32, m *message) {
	c.learn(m.failed)
	i := slices.IndexFunc(r.pending, func(k child) bool { return k.rank == from })
	if m.stamp != r.stamp || i < 0 { // of another wave
		return
	}
	if m.kind == Nak {
		c.disturb(r)
		c.refuse(r)
		return
	}
	r.pending = slices.Delete(r.pending, i, i+1)
	r.acked &= m.flags
	r.found = known(r.found, m.lock)
	c.advance(r)
}

// known returns what is known of two members' locks. Two that live have no different values: a value
// is locked anew only once all that live have answered that they have none, and no Lock of an
// earlier leader reaches them after that.
func known(a, b locked) locked {
	if !a.is || b.isDecided {
		return b
	}
	return a
}

// refuse gives a wave up that has met a dead member.
func (c *Core) refuse(r *round) {
	switch {
	case r.ballot == c.cfg.Rank:
		c.begin(r, r.kind)
	case !r.isAnswered:
		r.isAnswered, r.pending = true, nil
		c.send(newTree(c.cfg.Size, r.failed).parent(c.cfg.Rank), c.answer(r, Nak))
	}
}

// answer returns an answer to the wave, with what is known of deaths.
func (c *Core) answer(r *round, k Kind) *message {
	m := &message{kind: k, number: r.number, before: r.before, stamp: r.stamp}
	for _, rank := range c.dead.list() {
		if _, is := slices.BinarySearch(r.failed, rank); !is {
			m.failed = append(m.failed, rank)
		}
	}
	return m
}

// advance answers the wave, or begins the next, once all below have answered.
func (c *Core) advance(r *round) {
	if r.isAnswered || len(r.pending) > 0 || r.kind == Collect && !r.isStarted {
		return
	}
	r.isAnswered = true
	if r.kind == Collect {
		r.acked &= r.flags
		r.found = known(r.found, r.lock)
	}
	if r.ballot != c.cfg.Rank {
		m := c.answer(r, Ack)
		if r.kind == Collect {
			m.flags, m.lock = r.acked, r.found
		}
		c.send(newTree(c.cfg.Size, r.failed).parent(c.cfg.Rank), m)
		return
	}
	switch r.kind {
	case Collect:
		if r.found.isDecided {
			r.lock = r.found
			c.decide(r)
			c.begin(r, Commit)
			return
		}
		if r.lock = r.found; !r.lock.is {
			r.lock = locked{is: true, value: Value{r.acked, c.dead.list()}}
		}
		c.begin(r, Lock)
	case Lock:
		c.decide(r)
		c.begin(r, Commit)
	default: // all have decided
	}
}

// decide takes the value that is locked.
func (c *Core) decide(r *round) {
	if r.isDecided() && r == c.last {
		return
	}
	r.lock.isDecided = true
	r.slowAt = core.Never
	if r == c.next {
		c.last, c.next = r, nil
		c.out.Decided = append(c.out.Decided, Decision{r.number, r.lock.value})
	}
}
