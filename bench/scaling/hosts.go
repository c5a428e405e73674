package scaling

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/internal/sim"
)

// A player is a host that takes part in an allreduce by messages, with a processor of its own. It adds what comes
// batch by batch, while the rest of the message is under way. Its
// network is the tree's, with as many links upward from each switch as downward, and no two
// messages on one of them: links of hosts alone are shared. Copies cost nothing, and long
// messages need no word before them, which favours hosts.
type player struct {
	f    *players
	rank int
	next func() (*schedule.Round, bool)

	free   core.Time   // when the processor has done what it has to do
	waits  map[int]int // for so many messages of a peer; less than 0: so many came before the round
	open   int         // messages that the round waits for
	locals int         // bytes that the round has yet to add
	wake   core.Time   // Deadline
	ended  core.Time   // core.Never: it has not
}

// players is a simulation of them.
type players struct {
	model *Model
	shape Shape
	world *sim.World
	up    []port
	down  []port
	later time.Duration
}

// By simulates an allreduce of bytes by an algorithm of hosts among the members of a shape, and returns
// the time of the slowest member.
func (m Model) By(a schedule.Algorithm, s Shape, bytes int) (time.Duration, error) {
	return m.play(s, func(rank int) (iter.Seq[*schedule.Round], error) {
		c := &schedule.Call{Collective: schedule.Allreduce, Rank: rank, Size: s.Hosts(), Width: 4, Count: bytes / 4, Segment: schedule.SegmentBytes}
		if err := c.Validate(); err != nil {
			return nil, err
		}
		made, err := schedule.Make(c, a)
		if err != nil {
			return nil, err
		}
		return made.Rounds, nil
	})
}

// play simulates members that play rounds.
func (m Model) play(s Shape, roundsOf func(rank int) (iter.Seq[*schedule.Round], error)) (time.Duration, error) {
	if err := errors.Join(m.Validate(), s.Validate()); err != nil {
		return 0, err
	}
	n := s.Hosts()
	w, err := sim.New(sim.Config{Seed: 1, Budget: 1 << 40})
	if err != nil {
		return 0, err
	}
	f := &players{model: &m, shape: s, world: w, up: make([]port, n), down: make([]port, n)}
	w.Intercept(f.fate)
	all := make([]*player, n)
	for rank := range all {
		rounds, err := roundsOf(rank)
		if err != nil {
			return 0, err
		}
		p := &player{f: f, rank: rank, waits: map[int]int{}, wake: core.Never, ended: core.Never}
		next, stop := iter.Pull(rounds)
		defer stop()
		p.next = next
		all[rank] = p
		w.Add("", p)
	}
	for rank := range all {
		w.Command(sim.NodeID(rank), begin{})
	}
	if err := w.Run(); err != nil {
		return 0, err
	}
	last := core.Time(0)
	for rank, p := range all {
		if p.ended == core.Never {
			return 0, fmt.Errorf("%w: hosts' rounds do not end at rank %d", ErrResult, rank)
		}
		last = max(last, p.ended)
	}
	return last.Sub(0), nil
}

// Deadline implements sim.Node.
func (p *player) Deadline() core.Time { return p.wake }

// Step implements sim.Node.
func (p *player) Step(now core.Time, batch []sim.Delivery, h sim.Handle) {
	for i := range batch {
		switch d := &batch[i]; {
		case d.Kind != sim.Datagram:
		case int(d.From.Node) == p.rank:
			p.take(now, d)
		default:
			h.Send(0, sim.Addr{Node: sim.NodeID(p.rank)}, d.Bytes, nil)
		}
	}
	p.wake = core.Never
	for p.ended == core.Never && p.open == 0 {
		if p.free > now { // the round ends when the processor has done its part
			p.wake = p.free
			return
		}
		if p.locals > 0 {
			p.work(now, p.f.model.Costs.adding(p.locals))
			p.locals = 0
			continue
		}
		round, ok := p.next()
		if !ok {
			p.ended = now
			return
		}
		p.begin(now, round, h)
	}
}

// work occupies the processor, and returns when that ends.
func (p *player) work(now core.Time, d time.Duration) core.Time {
	p.free = max(p.free, now).Add(d)
	return p.free
}

// begin sends what a round sends, and notes what it waits for.
func (p *player) begin(now core.Time, round *schedule.Round, h sim.Handle) {
	for _, t := range round.Recvs {
		if p.waits[t.Peer]++; p.waits[t.Peer] > 0 {
			p.open++
		}
	}
	for _, t := range round.Sends {
		p.send(now, t.Peer, t.Size, h)
	}
	for _, l := range round.Locals {
		if !l.IsCopy() {
			p.locals += l.To.Size
		}
	}
}

// send sends a message in batches.
func (p *player) send(now core.Time, to, bytes int, h sim.Handle) {
	m := p.f.model
	for _, n := range m.batchesOf(bytes) {
		at := p.work(now, m.Costs.Send.of(m.packets(n), n))
		bytes -= n
		p.f.later = at.Sub(now)
		var word [13]byte
		binary.LittleEndian.PutUint64(word[:], uint64(n))
		binary.LittleEndian.PutUint32(word[8:], uint32(p.rank))
		if bytes == 0 {
			word[12] = 1 // the message's last
		}
		h.Send(0, sim.Addr{Node: sim.NodeID(to)}, word[:], nil)
	}
}

// take takes a batch.
func (p *player) take(now core.Time, d *sim.Delivery) {
	n, from := int(binary.LittleEndian.Uint64(d.Bytes)), int(binary.LittleEndian.Uint32(d.Bytes[8:]))
	m := p.f.model
	if p.free < now { // it looks
		p.free = now.Add(m.Costs.half())
	}
	p.work(now, m.Costs.Receive.of(m.packets(n), n))
	if p.waits[from] > 0 { // what is waited for is added as it comes
		adds := min(n, p.locals)
		p.work(now, m.Costs.adding(adds))
		p.locals -= adds
	}
	if d.Bytes[12] == 1 {
		if p.waits[from] > 0 {
			p.open--
		}
		p.waits[from]--
	}
}

// packets returns how many carry so many bytes of a message, and batchesOf the bytes of its batches.
func (m *Model) packets(bytes int) int { return max(1, (bytes+m.Chunk-1)/m.Chunk) }

func (m *Model) batchesOf(bytes int) (all []int) {
	most := m.Chunk * max(1, min(m.Batch, batchBytes/m.Chunk))
	for ; bytes > most; bytes -= most {
		all = append(all, most)
	}
	return append(all, bytes)
}

// fate has a batch come twice: at the port of the switch above its receiver, which serves batches in the order in
// which they come, and then, sent by the receiver to itself, in that one's memory.
func (f *players) fate(_ sim.Kind, from, to sim.Addr, word []byte, fate *sim.Fate) {
	bytes := int(binary.LittleEndian.Uint64(word))
	now := picoseconds(f.world.Now())
	at := int64(0)
	if from.Node == to.Node {
		at = f.model.lands(&f.down[to.Node], now, bytes)
	} else {
		at = f.model.rises(&f.up[from.Node], now+1000*int64(f.later), bytes, f.shape.between(int(from.Node), int(to.Node)))
	}
	fate.Delay = time.Duration((at - now + 999) / 1000)
}

// rises returns when the first packet of a batch that is sent at a time is at the port of the last of some switches, in
// picoseconds.
func (m *Model) rises(up *port, at int64, bytes, hops int) int64 {
	n := &m.Network
	first, _ := up.departure(n, at+1000*int64(n.Card), m.frames(bytes, m.Chunk))
	each := n.serial(n.Least)
	if !n.CutThrough {
		each = n.serial(m.frame(min(bytes, m.Chunk)))
	}
	latency := time.Duration(0)
	if m.Pipeline != nil {
		latency = m.Pipeline.Forward
	}
	return first + int64(hops)*(1000*int64(n.Cable+latency)+each)
}

// lands returns when a batch that is at the last switch's port has reached its receiver's memory.
func (m *Model) lands(down *port, at int64, bytes int) int64 {
	_, last := down.departure(&m.Network, at, m.frames(bytes, m.Chunk))
	return last + 1000*int64(m.Network.Cable+m.Network.Card)
}
