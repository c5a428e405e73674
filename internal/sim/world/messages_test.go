package world

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// messages are a member's messages with all others, as package hostlib/rail drives the cores of
// internal/core/rail: a connection on each rail, which both classes of paths share; sessions of two
// epochs, which outlast their connections; paths that owe acknowledgements for too long are closed
// where another lives.
type messages struct {
	rank  int
	rails [][]sim.NodeID // of all ranks
	cfg   messagesConfig
	peers []*railPeer // by rank
	out   rail.Output

	orders  []order
	on      []sim.NodeID // the rails that orders are for
	running []*hostOp    // operations under way, in order
	results []callResult // of the step
	suspect []suspect
	isOver  bool // the communicator has ended: messages of it are dropped
	last    *endpoint.Input
	now     core.Time
}

// messagesConfig is how the members of a group send messages.
type messagesConfig struct {
	rail     rail.Config
	health   rail.Health
	away     time.Duration // for how long a member may be before it is lost
	lastWord time.Duration // that the end of a member's messages waits for what its communicator says of its end
}

// space is that of the communicator's messages.
const (
	space   = 1
	context = space << 24
)

// suspect is a member that is taken for dead, if the communicator has not ended by then.
type suspect struct {
	rank int
	at   core.Time
	why  string
}

// Each frame on a rail begins with what it is: of a class, or one of these.
const (
	pingFrame byte = 2 + iota
	ackFrame       // followed by 4 bytes for each sort: the number of frames that it acknowledges
	sorts     = 3
)

// railPeer is another member.
type railPeer struct {
	rank     int
	core     *rail.Peer
	epochs   rail.Epochs
	epoch    uint64
	isAgreed bool
	losses   int
	under    int // requests that are under way
	conns    []railConn
	health   rail.Health
	judge    core.Time // when the connections are judged next
	reach    rail.Reach
	wants    bool      // the core waits for a path
	redial   core.Time // of rails that have failed, while another is up
}

// railConn is the connection on one rail.
type railConn struct {
	life           uint32
	isUp, isAgreed bool
	said           rail.Hello
	sent           [sorts][]uint32 // frames that are not acknowledged, by sort
	taken          [sorts]uint32   // frames of the other side that are to be acknowledged
	since, heard   core.Time
	isPath         bool
}

func newMessages(rank int, rails [][]sim.NodeID, cfg messagesConfig) *messages {
	m := &messages{rank: rank, rails: rails, cfg: cfg}
	cfg.rail.Accepts = func(c uint64) bool { return !m.isOver }
	for other := range rails {
		if other == rank {
			m.peers = append(m.peers, nil)
			continue
		}
		c, err := rail.New(cfg.rail)
		if err != nil {
			panic(err)
		}
		p := &railPeer{rank: other, core: c, conns: make([]railConn, len(rails[rank])), health: cfg.health, judge: core.Never, redial: core.Never}
		p.reach = rail.DefaultReach(cfg.away)
		p.reach.RetryMin, p.reach.RetryMax, p.reach.Expected = cfg.health.Within/8, cfg.health.Within, true
		p.begin()
		m.peers = append(m.peers, p)
	}
	return m
}

// begin begins a session that this side has not lost yet.
func (p *railPeer) begin() {
	p.epoch++
	p.epochs.Begin(p.epoch)
}

func (m *messages) deadline() core.Time {
	at := core.Never
	for _, p := range m.peers {
		if p != nil {
			at = at.Earlier(p.core.Deadline()).Earlier(p.judge).Earlier(p.redial).Earlier(p.reach.Deadline())
		}
	}
	for _, s := range m.suspect {
		at = at.Earlier(s.at)
	}
	return at
}

// step does what is due.
func (m *messages) step(now core.Time) {
	m.now = now
	for _, p := range m.peers {
		if p == nil {
			continue
		}
		if p.core.Deadline() <= now {
			p.core.Tick(now, &m.out)
			m.settle(p)
		}
		if p.redial <= now {
			if p.redial = core.Never; p.under > 0 {
				m.dial(p)
			}
		}
		if p.judge <= now {
			m.check(p)
		}
		if p.reach.Deadline() <= now {
			m.reaches(p)
		}
	}
}

// received takes what a rail reports.
func (m *messages) received(now core.Time, n *railNews) {
	m.now = now
	p := m.peers[n.rank]
	c := &p.conns[n.rail]
	if n.kind == sim.Message && n.life == c.life && c.isUp {
		m.frame(p, n.rail, n.bytes)
		return
	}
	if n.kind == sim.Message {
		return
	}
	if c.isUp {
		m.down(p, n.rail)
	}
	c.life = n.life
	if n.kind == sim.Up {
		*c = railConn{life: n.life, isUp: true, since: now, heard: now}
		m.say(p, n.rail)
		p.judge = p.judge.Earlier(now.Add(m.cfg.health.Every))
		m.reaches(p)
		return
	}
	p.redial = p.redial.Earlier(now.Add(m.cfg.health.Within))
	if n.kind == sim.Refused {
		p.reach.Failed(now)
	}
	m.reaches(p)
}

// reaches has all rails connect to a member of which something is awaited, and takes it for lost where
// none has been able to for too long.
func (m *messages) reaches(p *railPeer) {
	link := rail.NoLink
	for k := range p.conns {
		switch c := &p.conns[k]; {
		case c.isUp && c.isAgreed:
			link = rail.InSession
		case c.isUp && link == rail.NoLink:
			link = rail.Connected
		}
	}
	if link == rail.InSession {
		p.wants = false
	}
	isWanted := p.wants || p.under > 0 && (p.isAgreed || p.losses > 0)
	call, isLost := p.reach.Step(m.now, link, isWanted)
	if call {
		m.dial(p)
	}
	if isLost {
		m.lose(p, fmt.Errorf("no rail was left for %v", p.reach.Within), -1)
	}
}

// down ends the path on a rail.
func (m *messages) down(p *railPeer, k int) {
	c := &p.conns[k]
	c.isUp = false
	if c.isPath {
		c.isPath = false
		for _, class := range []rail.Class{rail.Message, rail.Fragment} {
			p.core.PathDown(uint8(k), class, m.now, &m.out)
		}
	}
	sent := c.sent
	c.sent = [sorts][]uint32{}
	for _, numbers := range sent[:pingFrame] {
		for _, number := range numbers {
			p.core.Sent(number, false, m.now, &m.out)
		}
	}
	m.settle(p)
}

// close ends the connection on a rail.
func (m *messages) close(p *railPeer, k int) {
	if c := &p.conns[k]; c.isUp {
		m.order(p, k, closeRail, nil)
		m.down(p, k)
		c.life++
	}
}

// frame takes a frame.
func (m *messages) frame(p *railPeer, k int, b []byte) {
	c := &p.conns[k]
	c.heard = m.now
	if b[0] == ackFrame {
		for sort := range sorts {
			n := binary.BigEndian.Uint32(b[1+4*sort:])
			for _, number := range c.sent[sort][:n] {
				if c.since = m.now; sort < int(pingFrame) {
					p.core.Sent(number, true, m.now, &m.out)
				}
			}
			c.sent[sort] = c.sent[sort][n:]
		}
		m.settle(p)
		return
	}
	class := rail.Class(b[0])
	switch body := b[1:]; {
	case b[0] == pingFrame:
	case body[0] == rail.KindHello:
		m.hear(p, k, body)
		return
	case !c.isAgreed:
		panic("a frame before the hello")
	default:
		if err := p.core.Arrived(uint8(k), class, body, m.now, &m.out); err != nil {
			panic(err)
		}
	}
	c.taken[b[0]]++
	m.settle(p)
}

// say says on a rail which session this side is in, unless it has.
func (m *messages) say(p *railPeer, k int) {
	c := &p.conns[k]
	h := p.epochs.Hello()
	h.Window = rail.Window{Bytes: uint32(m.cfg.rail.MaxUnexpected), Messages: uint32(m.cfg.rail.MaxHeads)}
	if c.isUp && c.said != h {
		c.said = h
		m.order(p, k, sendFrame, h.AppendTo([]byte{byte(rail.Message)}))
	}
}

// hear takes which session the other side is in.
func (m *messages) hear(p *railPeer, k int, b []byte) {
	h, err := rail.ParseHello(b)
	if err != nil {
		panic(err)
	}
	what, isLost, err := p.epochs.Hear(h)
	if err != nil {
		panic(err)
	}
	if isLost {
		m.lose(p, errors.New("it has lost the session"), k)
	}
	if what == rail.Stale {
		m.close(p, k)
		return
	}
	for k := range p.conns {
		m.say(p, k)
	}
	c := &p.conns[k]
	if what != rail.Agreed || c.isAgreed {
		return
	}
	c.isAgreed = true
	if !p.isAgreed {
		p.isAgreed = true
		p.core.Window(int(h.Window.Bytes), int(h.Window.Messages))
	}
	c.isPath = true
	for _, class := range []rail.Class{rail.Message, rail.Fragment} {
		p.core.PathUp(uint8(k), class, 0, 0, m.now, &m.out)
	}
	m.settle(p)
}

// lose ends the session: what is under way fails. The other side has said so on the rail to keep, or
// will learn of it.
func (m *messages) lose(p *railPeer, why error, keep int) {
	for k := range p.conns {
		if k != keep {
			m.close(p, k)
			continue
		}
		c := &p.conns[k]
		c.isAgreed = false
		if c.isPath {
			c.isPath = false
			for _, class := range []rail.Class{rail.Message, rail.Fragment} {
				p.core.PathDown(uint8(k), class, m.now, &m.out)
			}
		}
	}
	p.isAgreed, p.wants = false, false
	p.losses++
	p.core.Fail(why, m.now, &m.out)
	if keep < 0 {
		p.begin()
	}
	m.settle(p)
}

// dial has all rails connect to a member that have not.
func (m *messages) dial(p *railPeer) {
	for k := range p.conns {
		if !p.conns[k].isUp {
			m.order(p, k, dialRail, nil)
		}
	}
}

// check judges the rails to a member, and asks those that are silent. Where all have been for as long
// as the member may be away, it is.
func (m *messages) check(p *railPeer) {
	var samples []rail.Sample
	var of []int
	isSilent := true
	for k := range p.conns {
		c := &p.conns[k]
		if !c.isUp {
			continue
		}
		waits := slices.ContainsFunc(c.sent[:], func(numbers []uint32) bool { return len(numbers) > 0 })
		samples = append(samples, rail.Sample{Waits: waits, Since: c.since, Heard: c.heard})
		of = append(of, k)
		isSilent = isSilent && waits && m.now.Sub(max(c.since, c.heard)) >= m.cfg.away
	}
	if isSilent && len(of) > 0 {
		p.judge = core.Never
		p.reach.Silent(m.now, m.cfg.away)
		for _, k := range of {
			m.close(p, k)
		}
		return
	}
	verdicts, next := p.health.Judge(m.now, samples, nil)
	p.judge = core.Never
	isUsed := p.under > 0 || slices.ContainsFunc(samples, func(s rail.Sample) bool { return s.Waits })
	if isUsed {
		p.judge = next
	}
	for i, v := range verdicts {
		k := of[i]
		c := &p.conns[k]
		switch {
		case v == rail.Dead:
			m.close(p, k)
			p.redial = p.redial.Earlier(m.now.Add(m.cfg.health.Within))
		case isUsed && len(c.sent[pingFrame]) == 0: // also where it is idle: it may show that another is dead
			m.send(p, k, pingFrame, 0, nil)
		}
	}
}

// send sends a frame that is to be acknowledged.
func (m *messages) send(p *railPeer, k int, sort byte, number uint32, b []byte) {
	c := &p.conns[k]
	if !slices.ContainsFunc(c.sent[:], func(numbers []uint32) bool { return len(numbers) > 0 }) {
		c.since = m.now
	}
	c.sent[sort] = append(c.sent[sort], number)
	m.order(p, k, sendFrame, append([]byte{sort}, b...))
}

func (m *messages) order(p *railPeer, k int, what orderKind, b []byte) {
	m.orders = append(m.orders, order{what, m.rails[p.rank][k], p.conns[k].life, b})
	m.on = append(m.on, m.rails[m.rank][k])
}

// settle carries out what a core has brought about.
func (m *messages) settle(p *railPeer) {
	for len(m.out.Frames)+len(m.out.Done)+len(m.out.Lost) > 0 || m.out.Wanted != 0 {
		o := m.out
		m.out = rail.Output{}
		for i := range o.Frames {
			f := &o.Frames[i]
			m.send(p, int(f.Path), byte(f.Class), f.Number, slices.Concat(f.Head, f.Body))
		}
		if len(o.Frames) > 0 {
			p.judge = p.judge.Earlier(m.now.Add(m.cfg.health.Every))
		}
		p.wants = p.wants || o.Wanted != 0
		if len(o.Lost) > 0 {
			m.suspects(p.rank, "messages to it may not have arrived")
		}
		for i := range o.Done {
			m.finished(p, &o.Done[i])
		}
	}
	m.reaches(p)
}

// suspects has the communicator end for a member that cannot be reached, unless it says why it ends.
func (m *messages) suspects(rank int, why string) {
	if !slices.ContainsFunc(m.suspect, func(s suspect) bool { return s.rank == rank }) {
		m.suspect = append(m.suspect, suspect{rank, m.now.Add(m.cfg.lastWord), why})
	}
}

// failures adds what the communicator is to learn of members that cannot be reached.
func (m *messages) failures(now core.Time, in []endpoint.Input) []endpoint.Input {
	m.suspect = slices.DeleteFunc(m.suspect, func(s suspect) bool {
		if s.at > now {
			return false
		}
		in = append(in, endpoint.Input{Kind: endpoint.Failed, News: &endpoint.News{Fail: wire.Fail{Kind: wire.FailDead, Rank: uint32(s.rank), Reason: s.why}}})
		return true
	})
	return in
}

// end drops all messages: the communicator has ended.
func (m *messages) end(now core.Time) {
	m.now, m.isOver, m.suspect = now, true, nil
	for _, p := range m.peers {
		if p != nil {
			p.core.EndSpace(space, now, &m.out)
			m.settle(p)
		}
	}
}

// flush acknowledges what has come, and gives all orders to the rails.
func (m *messages) flush(h sim.Handle) {
	for _, p := range m.peers {
		if p == nil {
			continue
		}
		for k := range p.conns {
			if c := &p.conns[k]; c.isUp && c.taken != [sorts]uint32{} {
				b := []byte{ackFrame}
				for _, n := range c.taken {
					b = binary.BigEndian.AppendUint32(b, n)
				}
				m.order(p, k, sendFrame, b)
				c.taken = [sorts]uint32{}
			}
		}
	}
	for i, o := range m.orders {
		h.Notify(m.on[i], o)
	}
	m.orders, m.on = m.orders[:0], m.on[:0]
}

// waiting reports what a member's operations wait for.
func (m *messages) waiting() (all []string) {
	for _, o := range m.running {
		for _, x := range o.waits {
			what := "a send to"
			if x.recv != nil {
				what = "a receive from"
			}
			p := m.peers[x.Peer]
			line := fmt.Sprintf("rank %d, call %d, %v by %v: %s %d of %d bytes;", m.rank, o.number, o.run.Collective, o.by, what, x.Peer, x.Size)
			for k, c := range p.conns {
				line += fmt.Sprintf(" rail %d: up %v, agreed %v, sent %v;", k, c.isUp, c.isAgreed, c.sent)
			}
			all = append(all, line)
		}
	}
	return all
}
