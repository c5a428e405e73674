package rail

import "github.com/tributary-fabric/tributary/internal/core"

// sendLoad sends the envelope of a Get.
func (p *Peer) sendLoad(r *RecvRequest, i uint8) {
	r.receiver = receiver{state: taking, answer: kindAck, limit: uint64(len(r.Data))}
	r.id = p.recvs.add(r)
	number, f := p.flight(kindLoad)
	w := &f.head.words
	w[fieldSequence], w[fieldSize] = uint64(p.sequenced(0)), uint64(len(r.Data))
	w[fieldRegion], w[fieldKey], w[fieldOffset] = r.Handle.Number, r.Handle.Key, r.Offset
	r.head = f.head
	w[fieldReceiving] = r.id
	p.transmit(number, i)
	p.wantData()
}

// hold returns the memory that a one-sided request names.
func (p *Peer) hold(h *head, isWrite bool) (first []byte, rest [][]byte, named Handle, ok bool) {
	named = Handle{h.words[fieldRegion], h.words[fieldKey]}
	if p.cfg.Regions != nil && h.words[fieldSize] > 0 {
		var err error
		first, rest, err = p.cfg.Regions.Hold(named, h.words[fieldOffset], h.words[fieldSize], isWrite)
		ok = err == nil
	}
	if !ok {
		p.counters.Refused++
		p.took(heap{heads: 1})
	}
	return first, rest, named, ok
}

// serveLoad begins to send what the other side loads.
func (p *Peer) serveLoad(h *head) {
	first, rest, named, ok := p.hold(h, false)
	if !ok {
		p.refuseReceiver(h.words[fieldReceiving], 0, forbidden)
		return
	}
	s := p.spare.send()
	s.Data, s.Handle = first, named
	s.sender = sender{via: kindLoad, answer: kindAck, isPassive: true,
		peer: h.words[fieldReceiving], sequence: h.sequence(), granted: h.words[fieldSize], rest: rest}
	s.id = p.sends.add(s)
	p.startStream(s)
}

// serveStore begins to take what the other side stores.
func (p *Peer) serveStore(h *head, restart uint32, isAwaited bool) {
	mem, _, named, ok := p.hold(h, true)
	if !ok {
		f := p.answer(kindNack, h)
		f.head.words[fieldRestart] = uint64(restart)
		f.head.reason = forbidden
		return
	}
	r := p.spare.receive()
	r.Data, r.Handle = mem, named
	r.receiver = receiver{head: *h, restart: restart, isPassive: true, isAwaited: isAwaited}
	r.id = p.recvs.add(r)
	p.begun(r)
}

// Revoke ends the other side's loads and stores of a region, which is released: they fail
// there, as those do that come later. It reports whether some of it is lent to the transport until the
// completion of fragments.
func (p *Peer) Revoke(h Handle, now core.Time, out *Output) (isLent bool) {
	p.begin(now, out)
	for i := range p.recvs.places {
		if r := p.recvs.places[i].item; r != nil && r.isPassive && r.head.kind == kindStore && r.Handle == h {
			f := p.answer(kindNack, &r.head)
			f.head.words[fieldRestart], f.head.reason = uint64(r.restart), forbidden
			p.received(r, ErrRegion)
		}
	}
	for i := range p.sends.places {
		s := p.sends.places[i].item
		if s == nil || s.via != kindLoad || s.Handle != h {
			continue
		}
		isLent = isLent || s.lends()
		if s.state != ending {
			p.refuseReceiver(s.peer, s.restart, forbidden)
			p.finish(s, nil)
		}
	}
	p.end()
	return isLent
}

// Unlend takes that the transport reads nothing of a revoked region any more, on all paths
// that are up, though completions of its fragments are still to come: they are not sent again.
func (p *Peer) Unlend(h Handle) {
	for i := range p.sends.places {
		s := p.sends.places[i].item
		if s != nil && s.via == kindLoad && s.Handle == h && s.state == ending && !s.isOver && p.areUp(s) {
			p.unhold(s)
		}
	}
}

// areUp reports whether all outstanding data of a request are on paths that are up.
func (p *Peer) areUp(s *SendRequest) bool {
	for i := range p.net.flights {
		f := &p.net.flights[i]
		class := layouts[f.head.kind].class
		if !f.isUsed || class != Fragment || f.head.words[fieldSending] != s.id || f.session != p.session {
			continue
		}
		if p.net.up[Fragment]&(1<<f.path) == 0 || p.net.paths[Fragment][f.path].life != f.life {
			return false
		}
	}
	return true
}

// InFlight returns how many fragments on a path have no completion yet.
func (p *Peer) InFlight(i uint8, class Class) int { return p.net.paths[class][i].inFlight }
