package world

import (
	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/revoke"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// DataPort is the port at which hosts send and take data.
const DataPort = 1

// Host is a node with one member of a communicator. A Command or control value
// of type rank.Input goes to the member; what comes of it is kept in the
// exported fields.
type Host struct {
	core     *endpoint.Core
	place    *places
	client   *control  // nil: no manager
	messages *messages // nil: none
	revokes  *revokes
	in       []endpoint.Input
	out      endpoint.Output

	Completions []session.Completion
	Refused     []endpoint.Refused
	Entered     []endpoint.Entered
	Losses      []session.Loss
	Notices     []wire.Notice
	Ended       *wire.Fail // the communicator has failed
	Left, Gone  bool       // the last barrier is done, and every neighbour knows

	EndedAt core.Time // when the communicator has failed

	// Called, if not nil, is notified of the end of every operation by messages.
	Called func(callResult)
	// Completed, if not nil, is notified of every completion: from then on the
	// operation's buffers are the caller's again.
	Completed func(session.Completion)
}

// Demand is a command to the lowest rank of a managed group: what window it reports to
// the manager that the operations can use, until they show something else.
type Demand uint32

// places reports where the members of a group are. All of them share it.
type places struct {
	nodes []sim.NodeID // by rank
	ranks []int32      // by node; -1: no member
}

func newPlaces(nodes []sim.NodeID) *places {
	p := &places{nodes: nodes}
	for rank, id := range nodes {
		for len(p.ranks) <= int(id) {
			p.ranks = append(p.ranks, -1)
		}
		p.ranks[id] = int32(rank)
	}
	return p
}

func (p *places) rank(id sim.NodeID) (uint32, bool) {
	if int(id) >= len(p.ranks) || p.ranks[id] < 0 {
		return 0, false
	}
	return uint32(p.ranks[id]), true
}

// Core returns the member.
func (m *Host) Core() *endpoint.Core { return m.core }

// Deadline implements sim.Node.
func (m *Host) Deadline() core.Time {
	at := m.core.Deadline()
	if m.client != nil {
		at = at.Earlier(m.client.deadline())
	}
	if m.messages != nil {
		at = at.Earlier(m.messages.deadline())
	}
	return at
}

// Step implements sim.Node.
func (m *Host) Step(now core.Time, batch []sim.Delivery, h sim.Handle) {
	clear(m.in)
	m.in = m.in[:0]
	for i := range batch {
		m.take(now, &batch[i])
	}
	m.revoke(h)
	if m.messages != nil {
		m.messages.step(now)
		m.in = m.messages.failures(now, m.messages.held(m.in))
	}
	if m.client != nil {
		m.client.step(now, h)
		m.in = m.client.hand(m.in)
	}
	m.out.Reset()
	m.core.Step(now, m.in, &m.out)
	for i := range m.out.Datagrams {
		d := &m.out.Datagrams[i]
		if to, ok := AddrOf(d.To); ok {
			h.Send(DataPort, to, d.Head[:], d.Body)
		}
	}
	for i := range m.out.Messages {
		msg := &m.out.Messages[i]
		h.Write(m.place.nodes[msg.To], msg.Head, msg.Body)
	}
	if m.client != nil {
		m.client.brought(&m.out)
		m.client.step(now, h)
	}
	m.keep(now, h)
}

func (m *Host) take(now core.Time, d *sim.Delivery) {
	switch {
	case d.Kind == sim.Datagram:
		m.in = append(m.in, endpoint.Input{Kind: endpoint.Packet, From: AddrPort(d.From), Bytes: d.Bytes})
		return
	case d.Kind == sim.Command:
		switch v := d.Value.(type) {
		case endpoint.Input:
			if m.messages == nil || !m.messages.hold(&v) {
				m.in = append(m.in, v)
			}
		case callStart:
			m.call(now, v)
		case revoke.Input:
			m.revokes.in = append(m.revokes.in, v)
		case Demand:
			if m.client != nil {
				m.client.wants(uint32(v))
			}
		}
		return
	case m.client != nil && d.From.Node == m.client.manager:
		m.client.take(d)
		return
	case d.Kind == sim.Control:
		switch v := d.Value.(type) {
		case endpoint.Input:
			m.in = append(m.in, v)
		case railNews:
			m.messages.received(now, &v)
		}
		return
	}
	from, ok := m.place.rank(d.From.Node)
	if !ok || m.revokes.takes(from, d) {
		return
	}
	switch d.Kind {
	case sim.Message:
		m.in = append(m.in, endpoint.Input{Kind: endpoint.Frame, Rank: from, Bytes: d.Bytes})
	case sim.Up:
		m.in = append(m.in, endpoint.Input{Kind: endpoint.Connected, Rank: from})
	case sim.Dead, sim.Refused, sim.Closed:
		m.in = append(m.in, endpoint.Input{Kind: endpoint.Dead, Rank: from, News: &endpoint.News{Reason: d.Kind.String()}})
	default: // taken above
	}
}

// keep keeps what the step has brought, and notes what is rare in the trace.
func (m *Host) keep(now core.Time, h sim.Handle) {
	o := &m.out
	m.Completions = append(m.Completions, o.Completions...)
	m.Refused = append(m.Refused, o.Refused...)
	m.Left, m.Gone = m.Left || o.Left, m.Gone || o.Gone
	for _, c := range o.Completions {
		h.Note("operation %d done in epoch %d", c.ID, c.LastEpoch)
		if m.Completed != nil {
			m.Completed(c)
		}
	}
	for _, e := range o.Entered {
		m.Entered = append(m.Entered, e)
		h.Note("enters epoch %d, offload %v: %s", e.Epoch, e.Offload, e.Reason)
	}
	if o.Loss != nil {
		m.Losses = append(m.Losses, *o.Loss)
		h.Note("has lost the tree of epoch %d at chunk %d: %v", o.Loss.Epoch, o.Loss.Chunk, o.Loss)
	}
	if o.Notice != nil {
		m.Notices = append(m.Notices, *o.Notice)
	}
	if o.Ended != nil {
		m.Ended, m.EndedAt = o.Ended, now
		if o.Ended.Kind == wire.FailRevoked { // which another may have said on the tree of hosts alone
			m.revokes.in = append(m.revokes.in, revoke.Input{Kind: revoke.Revoke, From: o.Ended.Rank})
			m.revoke(h)
		}
		h.Note("ends: %+v", *o.Ended)
	}
	if o.Left {
		h.Note("leaves")
	}
	if m.messages != nil {
		m.keepMessages(now, h)
	}
}

// call begins an operation by messages, unless the communicator has ended.
func (m *Host) call(now core.Time, s callStart) {
	if m.Ended != nil {
		m.messages.results = append(m.messages.results, callResult{s.number, &errMemberDead{*m.Ended}})
		return
	}
	m.messages.begin(now, s)
}

// keepMessages ends messages with the communicator, and passes on what has become of operations.
func (m *Host) keepMessages(now core.Time, h sim.Handle) {
	if (m.out.Ended != nil || m.out.Left) && !m.messages.isOver {
		m.messages.end(now)
	}
	if m.Ended != nil {
		m.messages.concludeAll(m.Ended)
	}
	for _, r := range m.messages.results {
		h.Note("call %d is over: %v", r.number, r.err)
		m.Called(r)
	}
	m.messages.results = m.messages.results[:0]
	m.messages.flush(h)
}
