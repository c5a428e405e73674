package rail

import "github.com/tributary-fabric/tributary/internal/core"

// Fail ends the session: no path was left for too long, or the other side has started again. Every request
// is done with err: at once, or when the transport has returned its memory. Messages that
// have arrived whole stay for later receives, before those of the next session, in which
// both directions begin anew. What the driver has acknowledged has to have been handed to
// Arrived before; afterwards nothing of the old session may.
func (p *Peer) Fail(err error, now core.Time, out *Output) {
	p.begin(now, out)
	for i := range p.net.flights {
		if f := &p.net.flights[i]; f.isUsed && f.isOwn && !f.isCancelled && f.head.kind == kindMatch && f.session == p.session {
			p.out.Lost = append(p.out.Lost, SpaceOf(f.head.context()))
		}
	}
	for class := range classes {
		for i := range MaxRails {
			if p.net.up[class]&(1<<i) != 0 {
				p.net.choice[class].Down(i)
			}
		}
		p.net.up[class] = 0
	}
	for _, number := range p.net.control[p.net.first:] {
		p.unsent(&p.net.flights[number])
		p.release(number)
	}
	p.net.control, p.net.first = p.net.control[:0], 0
	p.session++
	p.failSends(err)
	p.failRecvs(err)
	p.next, p.box.expected = p.cfg.FirstSequence, p.cfg.FirstSequence
	p.sent, p.came, p.taken, p.reported, p.returned, p.lent, p.mustReport = heap{}, heap{}, heap{}, heap{}, heap{}, 0, false
	p.end()
}

// unsent notes that a fragment that waited for a path is dropped.
func (p *Peer) unsent(f *flight) {
	switch f.head.kind {
	case kindMatch, kindRndv, kindRget, kindStore, kindNotify, kindFin:
		if s := p.sends.get(f.head.words[fieldSending]); s != nil {
			s.outstanding--
		}
	}
}

func (p *Peer) failSends(err error) {
	for i := range p.queued {
		for s := p.queued[i].pop(); s != nil; s = p.queued[i].pop() {
			p.sentOut(s, err)
		}
	}
	for i := range p.sends.places {
		if s := p.sends.places[i].item; s != nil {
			if s.isOver = true; s.state != ending {
				p.finish(s, err)
			}
		}
	}
}

func (p *Peer) failRecvs(err error) {
	for r := p.loads.pop(); r != nil; r = p.loads.pop() {
		p.received(r, err)
	}
	for i := range p.recvs.places {
		if r := p.recvs.places[i].item; r != nil {
			p.received(r, err)
		}
	}
	m := &p.box
	for u := m.ahead.pop(); u != nil; u = m.ahead.pop() {
		m.arrived[bucket(u.Context)].push(u)
	}
	for i := range buckets {
		for r := m.waiting[i].pop(); r != nil; r = m.waiting[i].pop() {
			p.received(r, err)
		}
		for u := m.arrived[i].first; u != nil; {
			next := u.links.next
			if u.head.kind != kindMatch {
				m.arrived[i].remove(u)
				p.spare.recv(u)
			} else if !u.isKept {
				u.isKept = true
				m.kept.bytes += uint64(len(u.buffer))
				m.kept.heads++
			}
			u = next
		}
	}
	m.held = heap{}
}
