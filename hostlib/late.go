package hostlib

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/hostlib/rail"
	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/rollcall"
	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// lastCalls are the operations of which a communicator remembers what they were.
const lastCalls = 256

// calls are what a member has called on a communicator, in order.
type calls struct {
	position uint32 // of the next
	tags     [lastCalls]uint64
}

// called notes an operation whose tag make returns, and returns its position.
func (m *messaging) called(make func(serial uint16) uint64) (position uint32, tag uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.note(make)
}

// note is called for who holds the lock.
func (m *messaging) note(make func(serial uint16) uint64) (position uint32, tag uint64) {
	if m.past == nil {
		m.past = &calls{}
	}
	position = m.past.position
	tag = make(uint16(position))
	m.past.tags[position%lastCalls] = tag
	m.past.position++
	return position, tag
}

// record returns what was called at a position.
func (m *messaging) record(position uint32) rollcall.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.past == nil || int32(position-m.past.position) >= 0:
		return rollcall.Record{}
	case m.past.position-position > lastCalls:
		return rollcall.Record{IsForgotten: true}
	}
	return rollcall.Record{Tag: m.past.tags[position%lastCalls], IsCalled: true}
}

// finished returns the position before which no operation of this member awaits a message any more.
func (m *messaging) finished() uint32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case len(m.order) > 0:
		return m.order[0]
	case m.past != nil:
		return m.past.position
	}
	return 0
}

// isStray reports whether a member has sent a message of an operation that is over here, and did not
// await it: the two called different operations, and the communicator ends.
func (c *Communicator) isStray(rank int, p *rail.Peer) bool {
	finished := c.messaging.finished() // before the look at what has come
	s, has := c.messaging.calls.Probe(p, 0, ^rail.Tag(0))
	if !has || s.Tag == offerTag || s.Tag == takenTag { // which no operation awaits
		return false
	}
	position, isOver := overAt(uint16(uint64(s.Tag)>>48), finished)
	if !isOver {
		return false
	}
	own := c.messaging.record(position)
	if own.IsForgotten {
		c.abort(fmt.Sprintf("it does not await a message of rank %d (%s) for operation %d: they called different operations", rank, c.hostOf(uint32(rank)), position))
		return true
	}
	c.disagree([2]wire.Called{{Rank: uint32(c.rank), Tag: own.Tag}, {Rank: uint32(rank), Tag: uint64(s.Tag), Bytes: uint64(s.Size)}})
	return true
}

// overAt returns the operation that a message names by the last 16 bits of its position, and whether it
// is over where those before finished are. A member may be far more than 32,768 ahead of one that it
// sends nothing to: what would be further back than furthest, or before the first, is still to come.
func overAt(serial uint16, finished uint32) (position uint32, isOver bool) {
	back := uint32(-int32(int16(serial - uint16(finished))))
	return finished - back, back > 0 && back <= min(furthest, finished)
}

// findStrays looks at what all members have sent.
func (c *Communicator) findStrays() (found bool) {
	m := &c.messaging
	m.mu.Lock()
	peers, isFormed := slices.Clone(m.peers), m.calls != nil
	m.mu.Unlock()
	for rank, p := range peers {
		if p != nil && isFormed && !found {
			found = c.isStray(rank, p)
		}
	}
	return found
}

// leaveCode is what the tag of the last barrier says as its function.
const leaveCode = 14

// tagOf returns what makes the tag of an operation on the communicator's tree.
func (c *Communicator) tagOf(o *session.Operation) func(serial uint16) uint64 {
	return func(serial uint16) uint64 {
		k := schedule.Call{Collective: schedule.Collective(o.Collective), Root: int(o.Root), Count: o.Elements}
		function := uint8(o.Function)
		if o.Last {
			function = leaveCode
		}
		return k.Tag(serial, function, uint8(o.Vectors()))
	}
}

// callRolls has communicators whose operations are late find out why, until the host is closed.
func (h *Host) callRolls() {
	ticker := time.NewTicker(h.cfg.SlowAfter)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-h.ctx.Done():
			return
		}
		for _, c := range h.counts.all() {
			c.findStrays()
			c.callRoll()
		}
	}
}

// Wait is an operation that has not ended.
type Wait struct {
	Collective string        // "allgather", ...
	Operation  uint32        // its number among all that this member has called on the communicator
	For        time.Duration // since this member has called it
	// Late are ranks that have not called it, the first few, where that is known: not before
	// Config.SlowAfter.
	Late []int
}

// Waiting returns the oldest operation of this member that has not ended, if there is one.
func (c *Communicator) Waiting() (w Wait, isWaiting bool) {
	r := c.oldest()
	if r == nil {
		return Wait{}, false
	}
	w = Wait{Collective: r.collective.String(), Operation: r.position, For: c.host.clock.Now().Sub(r.begun)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.late.position == r.position {
		for _, rank := range c.late.ranks {
			w.Late = append(w.Late, int(rank))
		}
	}
	return w, true
}

// waiting is what of a Request is needed while it may end.
type waiting struct {
	collective schedule.Collective
	position   uint32
	tag        uint64
	begun      core.Time
}

// oldest returns the operation that has not ended and was called first; nil: there is none.
func (c *Communicator) oldest() (first *waiting) {
	take := func(r *Request) {
		if first == nil || int32(r.position-first.position) < 0 {
			first = &waiting{r.collective, r.position, r.tag, r.begun}
		}
	}
	c.mu.Lock()
	c.requests.each(take)
	c.mu.Unlock()
	m := &c.messaging
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.order) > 0 {
		take(m.inFlight[m.order[0]])
	}
	return first
}

// lateness is what is known of who has not called an operation.
type lateness struct {
	position uint32
	round    uint8
	ranks    []uint32
	isLogged bool
}

// callRoll floods what the oldest operation is, if it is late.
func (c *Communicator) callRoll() {
	w := c.oldest()
	if w == nil || len(c.members) == 1 || c.sub.leads != nil {
		return
	}
	elapsed := c.host.clock.Now().Sub(w.begun)
	if elapsed < c.host.cfg.SlowAfter {
		return
	}
	c.mu.Lock()
	l := &c.late
	if l.position != w.position || l.round == 0 {
		*l = lateness{position: w.position}
	}
	isDue := l.round < 200 && (l.round == 0 || elapsed >= c.host.cfg.SlowAfter<<min(l.round, 20))
	if isDue {
		l.round++
	}
	round, ranks, isLogged := l.round, slices.Clone(l.ranks), l.isLogged
	l.isLogged = l.isLogged || len(ranks) > 0
	c.mu.Unlock()
	if len(ranks) > 0 && !isLogged {
		c.host.cfg.Log.Warn("an operation waits for members that have not called it", slog.String("communicator", c.name),
			slog.String("collective", w.collective.String()), slog.Uint64("operation", uint64(w.position)), slog.String("members", c.named(ranks)))
	}
	if isDue {
		c.post(item{roll: &wire.Waiting{Position: w.position, Round: round, Rank: uint32(c.rank), Tag: w.tag}})
	}
}

// named returns the names of members.
func (c *Communicator) named(ranks []uint32) string {
	var b strings.Builder
	for i, rank := range ranks {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "rank %d (%s)", rank, c.hostOf(rank))
	}
	return b.String()
}

// roll is what the loop knows of late operations.
type roll struct {
	core   *rollcall.Core
	inputs []rollcall.Input
	out    rollcall.Output
}

// takes reports whether an item is for the roll, and notes it.
func (r *roll) takes(c *Communicator, it *item) bool {
	in := rollcall.Input{From: uint32(c.rank), Waiting: it.roll}
	if it.roll == nil {
		if it.in.Kind != endpoint.Frame || len(it.in.Bytes) == 0 {
			return false
		}
		if k := wire.FrameKind(it.in.Bytes[0]); k != wire.FrameWaiting && k != wire.FrameLate {
			return false
		}
		m, err := wire.ReadFrame(it.in.Bytes)
		if err != nil {
			return false // the member's core ends the communicator for it
		}
		in.From = it.in.Rank
		switch m := m.(type) {
		case *wire.Waiting:
			in.Waiting = m
		case *wire.Late:
			in.Late = m
		}
	}
	if in.Waiting != nil {
		in.Own = c.messaging.record(in.Waiting.Position)
	}
	if r.core == nil {
		var neighbours []uint32
		for peer := range c.links {
			neighbours = append(neighbours, uint32(peer))
		}
		slices.Sort(neighbours)
		r.core = rollcall.New(uint32(c.rank), neighbours)
	}
	r.inputs = append(r.inputs, in)
	return true
}

// rolls steps the roll, if there is anything to do.
func (s *stepper) rolls(out *endpoint.Output) {
	r := &s.roll
	if len(r.inputs) == 0 {
		return
	}
	r.out.Reset()
	r.core.Step(r.inputs, &r.out)
	for _, m := range r.out.Sends {
		out.Messages = append(out.Messages, endpoint.Message{To: m.To, Head: m.Frame})
	}
	s.mu.Lock()
	s.late.ranks = r.core.Late(s.late.position)
	s.mu.Unlock()
	if d := r.out.Disagreed; d != nil {
		s.inputs = append(s.inputs, endpoint.Input{Kind: endpoint.Failed, News: &endpoint.News{Fail: wire.Fail{Kind: wire.FailCalls, Rank: uint32(s.rank), Calls: *d}}})
	}
	clear(r.inputs)
	r.inputs = r.inputs[:0]
}
