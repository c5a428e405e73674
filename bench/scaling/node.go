package scaling

import (
	"net/netip"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// addrOf returns the address of a node, and nodeOf the node of an address.
func addrOf(id sim.NodeID) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(id >> 16), byte(id >> 8), byte(id)}), 4791)
}

func nodeOf(a netip.AddrPort) sim.NodeID {
	b := a.Addr().As4()
	return sim.NodeID(b[1])<<16 | sim.NodeID(b[2])<<8 | sim.NodeID(b[3])
}

// sender sends batches for a node, each when its system call ends.
type sender struct {
	carrier *carrier
	model   *Model
	batch   int  // most packets of one
	cuts    bool // a card makes packets of it, each of which travels by itself
	buffer  []byte
}

// send sends packets of a size, the last of which may be shorter, spent after now; it returns the time
// spent then.
func (s *sender) send(h sim.Handle, to netip.AddrPort, packets []byte, size int, spent time.Duration, cost *Cost) time.Duration {
	most := max(1, min(s.batch, batchBytes/size))
	if b := s.model.Network.Burst; b > 0 {
		most = max(1, min(most, b/s.model.frame(size)))
	}
	for len(packets) > 0 {
		n := min(len(packets), most*size)
		if cost != nil {
			spent += cost.of((n+size-1)/size, n)
		}
		s.carrier.later = spent
		for t := packets[:n]; len(t) > 0; {
			one := n
			if s.cuts {
				one = min(size, len(t))
			}
			h.Send(uint16(min(size, one)), sim.Addr{Node: nodeOf(to)}, t[:one], nil)
			t = t[one:]
		}
		packets = packets[n:]
	}
	s.carrier.later = 0
	return spent
}

// reducer is a switch: its core in a program on a machine, or in a pipeline.
type reducer struct {
	core *switchreduce.Core
	out  switchreduce.Output
	in   []switchreduce.Input

	sender
	process *process // nil: it is a pipeline
}

// Deadline implements sim.Node. Leases are not used.
func (r *reducer) Deadline() core.Time { return core.Never }

// Step implements sim.Node.
func (r *reducer) Step(now core.Time, batch []sim.Delivery, h sim.Handle) {
	if r.process == nil {
		for i := range batch {
			r.pass(now, &batch[i], h)
		}
		return
	}
	for i := range batch {
		if batch[i].Kind == sim.Datagram {
			r.process.take(&batch[i])
			continue
		}
		r.work(now, h)
	}
}

// take puts a batch that was received into the inbox.
func (p *process) take(d *sim.Delivery) {
	if p.machine.model.Network.isWire() {
		for i := len(p.inbox) - 1; i >= max(0, len(p.inbox)-offloadFlows); i-- {
			if t := &p.inbox[i]; t.from == d.From.Node {
				if !t.joins(d, p.machine.model.Batch) {
					break
				}
				t.bytes = append(t.bytes, d.Bytes...)
				return
			}
		}
	}
	p.inbox = append(p.inbox, batch{d.From.Node, append([]byte(nil), d.Bytes...), int(d.From.Port)})
	p.hear()
}

// joins reports whether a packet becomes part of a batch by receive offload.
func (t *batch) joins(d *sim.Delivery, most int) bool {
	return t.from == d.From.Node && len(t.bytes)%t.size == 0 && len(d.Bytes) <= t.size && len(t.bytes)+len(d.Bytes) <= min(most*t.size, batchBytes)
}

// input returns a batch as the core takes it.
func input(from sim.NodeID, bytes []byte, size int) switchreduce.Input {
	in := switchreduce.Input{Kind: switchreduce.Packet, From: addrOf(from), Packet: bytes}
	if len(bytes) > size {
		in.Size = size
	}
	return in
}

// pass takes a packet through the pipeline.
func (r *reducer) pass(now core.Time, d *sim.Delivery, h sim.Handle) {
	if d.Kind != sim.Datagram {
		return
	}
	r.out.Reset()
	r.in = append(r.in[:0], input(d.From.Node, d.Bytes, int(d.From.Port)))
	r.core.Step(now, r.in, &r.out)
	for i := range r.out.Sends {
		s := &r.out.Sends[i]
		r.buffer = append(append(r.buffer[:0], s.Head[:]...), s.Body...)
		r.send(h, s.To, r.buffer, len(r.buffer), r.model.Pipeline.Latency, nil)
	}
}

// work is a turn on a processor.
func (r *reducer) work(now core.Time, h sim.Handle) {
	in, spent := r.process.begin(now)
	packets, bytes := 0, 0
	r.in = r.in[:0]
	for i := range in {
		t := &in[i]
		r.in = append(r.in, input(t.from, t.bytes, t.size))
		packets, bytes = packets+t.packets(), bytes+len(t.bytes)
	}
	r.out.Reset()
	r.out.TakesBatches = true
	r.core.Step(now, r.in, &r.out)
	spent += r.model.Costs.Aggregate.of(packets, bytes)
	for i := range r.out.Sends {
		s := &r.out.Sends[i]
		r.buffer = append(append(r.buffer[:0], s.Head[:]...), s.Body...)
		spent = r.send(h, s.To, r.buffer, len(r.buffer), spent, &r.model.Costs.Send)
	}
	for i := range r.out.Batches {
		b := &r.out.Batches[i]
		b.Address()
		spent = r.send(h, b.To, b.Packets, b.Size, spent, &r.model.Costs.Send)
	}
	r.process.end(now, spent)
}

// member is a host: the core of one member, and the program that calls operations.
type member struct {
	session *session.Session
	out     session.Output
	in      []session.Input

	sender
	process *process

	calls  *calls
	at     int // of the next call
	begun  core.Time
	times  []time.Duration // of the operations that are timed
	wrong  error
	serial uint64
}

// Deadline implements sim.Node.
func (m *member) Deadline() core.Time {
	if m.process.state == waiting || m.process.state == working {
		return core.Never // it is asked again after that
	}
	return m.session.Deadline()
}

// Step implements sim.Node.
func (m *member) Step(now core.Time, batch []sim.Delivery, h sim.Handle) {
	for i := range batch {
		switch {
		case batch[i].Kind == sim.Datagram:
			m.process.take(&batch[i])
		case batch[i].Value == turn{}:
			m.work(now, h)
		default: // begin
			m.process.isDue = true
			m.process.hear()
		}
	}
	if len(batch) == 0 {
		m.process.isDue = true
		m.process.hear()
	}
}

// work is a turn on a processor.
func (m *member) work(now core.Time, h sim.Handle) {
	in, spent := m.process.begin(now)
	m.in = m.in[:0]
	packets, bytes := 0, 0
	for i := range in {
		t := &in[i]
		one := session.Input{From: addrOf(t.from), Packet: t.bytes}
		if len(t.bytes) > t.size {
			one.Size = t.size
		}
		m.in = append(m.in, one)
		packets, bytes = packets+t.packets(), bytes+len(t.bytes)
	}
	if m.at == 0 {
		m.call(now)
	}
	spent += m.step(now, m.in, packets, bytes)
	for { // a member calls its next operation when one is done
		spent = m.flush(h, spent)
		if len(m.out.Completions) == 0 {
			break
		}
		m.complete(now.Add(spent))
		if !m.call(now.Add(spent)) {
			break
		}
		spent += m.step(now, nil, 0, 0)
	}
	m.process.bulk = m.session.Streams(bulkAbove)
	m.process.end(now, spent)
}

// step steps the core and returns what that costs.
func (m *member) step(now core.Time, in []session.Input, packets, bytes int) time.Duration {
	m.out.Reset()
	m.out.TakesBatches = true
	m.session.Step(now, in, &m.out)
	for i := range m.out.Sends {
		s := &m.out.Sends[i]
		n := 1
		if s.Size > 0 {
			n = (len(s.Body) + s.Size - 1) / s.Size
		}
		packets, bytes = packets+n, bytes+n*wire.HeaderSize+len(s.Body)
	}
	return m.model.Costs.Session.of(packets, bytes)
}

// flush sends what the core wants to send.
func (m *member) flush(h sim.Handle, spent time.Duration) time.Duration {
	for i := range m.out.Sends {
		s := &m.out.Sends[i]
		m.buffer = m.buffer[:0]
		if s.Size == 0 {
			m.buffer = append(append(m.buffer, s.Head[:]...), s.Body...)
			spent = m.send(h, s.To, m.buffer, len(m.buffer), spent, &m.model.Costs.Send)
			continue
		}
		for heads, rest := s.Heads, s.Body; len(rest) > 0; heads = heads[wire.HeaderSize:] {
			n := min(s.Size, len(rest))
			m.buffer = append(append(m.buffer, heads[:wire.HeaderSize]...), rest[:n]...)
			rest = rest[n:]
		}
		spent = m.send(h, s.To, m.buffer, wire.HeaderSize+s.Size, spent, &m.model.Costs.Send)
	}
	return spent
}
