package rail

// completed takes the completion of a fragment and reports whether it is to be sent again.
func (p *Peer) completed(f *flight, ok bool) (isAgain bool) {
	switch f.head.kind {
	case kindMatch:
		s := p.sends.get(f.head.words[fieldSending])
		switch {
		case s == nil: // buffered: the request is gone
			return !ok
		case ok:
			p.ended(s, nil)
		case s.state == ending: // the session is over
			p.ended(s, s.err)
		default:
			return true
		}
	case kindRndv, kindRget, kindStore, kindFrag, kindWrite, kindData, kindNotify:
		if s := p.sends.get(f.head.words[fieldSending]); s != nil {
			return p.sendCompleted(s, &f.head, ok)
		}
	case kindAck, kindPut, kindRead, kindRecvErr, kindRestartAck:
		if r := p.recvs.get(f.head.words[fieldReceiving]); r != nil {
			return p.recvCompleted(r, &f.head, ok)
		}
		// A message that was not matched, or not there, had no request then.
		return f.head.kind == kindRestartAck && f.head.words[fieldReceiving] == 0 && !ok
	case kindFin:
		s := p.sends.get(f.head.words[fieldSending])
		if s == nil || s.state == finishing && !ok {
			return !ok
		}
		s.outstanding--
		p.finish(s, s.err)
	case kindRecvFin, kindLoad, kindNack, kindRefused, kindBringDown:
		return !ok
	case kindCredit:
		p.mustReport = p.mustReport || !ok && f.session == p.session
	}
	return false
}

// sendCompleted takes the completion of a fragment of a request.
func (p *Peer) sendCompleted(s *SendRequest, h *head, ok bool) (isAgain bool) {
	s.outstanding--
	switch {
	case h.kind != kindNotify:
		// An ACK proves that the envelope has arrived.
		isOffer := layouts[h.kind].class == Message
		if !ok && h.restart() == s.restart && (s.state == offered || s.state == streaming && !isOffer) {
			p.failed(s)
			return false
		}
	case s.state == notifying && !ok:
		s.outstanding++
		return true
	case s.state == notifying:
		s.state = waiting
	case s.state == answeredAck:
		p.restart(s)
	}
	p.advance(s)
	return false
}

// failed notes an error of a request: it restarts once nothing of it is outstanding.
func (p *Peer) failed(s *SendRequest) {
	if s.state == offered || s.state == streaming {
		p.stopStream(s)
		s.state = draining
		p.advance(s)
	}
}

// drained begins the dance.
func (p *Peer) drained(s *SendRequest) {
	p.counters.Restarts++
	s.restart++
	s.state = notifying
	s.outstanding++
	p.matchHead(s, &p.control(kindNotify).head)
	if s.isWithdrawn && !s.isPassive {
		p.withdraw(s)
	}
}

// recvErrored takes RECVERRNOTIFY: the receiver has an error. A request that is gone, or
// waits for the completion of its FIN, needs no restart: the receiver will have all of it.
func (p *Peer) recvErrored(h *head) {
	if s := p.sends.get(h.words[fieldSending]); s != nil && s.restart == h.restart() {
		p.failed(s)
	} else {
		p.counters.Late++
	}
}

// answered takes RNDVRESTARTACK and RNDVRESTARTNACK.
func (p *Peer) answered(h *head) {
	s := p.sends.get(h.words[fieldSending])
	switch {
	case s != nil && s.via == kindStore && h.kind == kindNack && s.state != ending:
		// The other side keeps nothing of a store that has ended: whether it was done is in the
		// RECVFIN, or in the refusal, which are sent until they arrive, in whichever restart.
		if h.reason != complete || s.hasFin {
			p.finish(s, h.reason.err())
		}
	case s == nil || s.restart != h.restart() || s.state == ending || s.state == eager || s.state == finishing && h.kind == kindNack:
		p.counters.Late++
	case h.kind == kindNack:
		p.finish(s, h.reason.err())
	case s.state == notifying:
		s.state = answeredAck
		s.peer = h.words[fieldReceiving]
	case s.state == waiting:
		s.peer = h.words[fieldReceiving]
		p.restart(s)
	default:
		p.counters.Late++
	}
}

// restart sends a request again from its beginning: the other side is ready for it, and
// nothing of before is outstanding.
func (p *Peer) restart(s *SendRequest) {
	switch {
	case s.isWithdrawn && s.peer != 0:
		p.refuseReceiver(s.peer, s.restart, withdrawn)
		p.ended(s, nil)
	case s.via == kindLoad:
		p.startStream(s)
	default:
		p.requeue(p.offer(s))
	}
}

// recvFinished takes a FIN of a receiver: it has all, in whichever restart.
func (p *Peer) recvFinished(h *head) {
	s := p.sends.get(h.words[fieldSending])
	switch {
	case s == nil || !s.needsFin() || s.sequence != h.sequence():
		p.counters.Duplicates++
	case s.state == streaming:
		s.hasFin = true
		p.advance(s)
	case s.state != ending:
		p.finish(s, nil)
	}
}

// finished takes the FIN of a sender: it has written all.
func (p *Peer) finished(h *head) {
	r := p.recvs.get(h.words[fieldReceiving])
	if r == nil || r.head.sequence() != h.sequence() || r.restart != h.restart() || !r.isTaking() {
		p.counters.Duplicates++
		return
	}
	r.hasFin = true
	p.progress(r)
}

// notified takes RNDVRESTARTNOTIFY.
func (p *Peer) notified(h *head) {
	r := p.find(h)
	switch {
	case r == nil && (h.words[fieldReceiving] != 0 || p.box.isPast(h.sequence())):
		p.answerNack(h, complete)
	case r == nil: // the envelope has not come, or will come late
		p.answer(kindRestartAck, h)
	case int32(h.restart()-r.restart) <= 0:
		p.counters.Late++
	case r.id == 0: // no receive has matched it: there is nothing to reset
		r.restart, r.isAwaited = h.restart(), true
		p.answer(kindRestartAck, h)
	default:
		if r.head.kind == kindLoad {
			r.head.words[fieldSending] = h.words[fieldSending]
		}
		p.reset(r, h.restart(), false)
	}
}

// reset puts a matched receive in error on the sender's behalf. IsThere: the envelope of the
// restart has come as well.
func (p *Peer) reset(r *RecvRequest, number uint32, isThere bool) {
	r.restart, r.got, r.hasFin = number, 0, false
	r.state, r.isThere = resetting, isThere
	p.recvAdvance(r)
}

// answer makes an answer to a sender, from no request.
func (p *Peer) answer(k kind, h *head) *flight {
	f := p.reply(k)
	f.head.words[fieldRestart], f.head.words[fieldSending] = h.words[fieldRestart], h.words[fieldSending]
	return f
}

func (p *Peer) answerNack(h *head, why reason) { p.answer(kindNack, h).head.reason = why }

// refuseReceiver lets a receiver know that no data will come.
func (p *Peer) refuseReceiver(receiver uint64, number uint32, why reason) {
	f := p.reply(kindRefused)
	f.head.reason = why
	f.head.words[fieldRestart], f.head.words[fieldReceiving] = uint64(number), receiver
}

// recvCompleted takes the completion of a fragment of a matched receive.
func (p *Peer) recvCompleted(r *RecvRequest, h *head, ok bool) (isAgain bool) {
	if !ok && h.restart() == r.restart {
		switch h.kind {
		case kindRecvErr:
			if r.state == asking {
				return true
			}
		case kindRestartAck:
			if r.state == ready || r.head.kind == kindLoad {
				return true
			}
		default:
			if r.state == taking {
				r.state = recvDraining
			}
		}
	}
	r.outstanding--
	p.recvAdvance(r)
	return false
}

// recvAdvance does what a matched receive can do once nothing of it is outstanding.
func (p *Peer) recvAdvance(r *RecvRequest) {
	if r.outstanding > 0 {
		return
	}
	switch r.state {
	case recvDraining:
		r.state = asking
		p.ownControl(kindRecvErr, r)
	case resetting:
		if r.isThere {
			p.grant(r)
			return
		}
		r.state = ready
		if r.head.kind == kindLoad {
			r.state = taking
		}
		p.ownControl(kindRestartAck, r)
	}
}

// ownControl makes a fragment of a matched receive.
func (p *Peer) ownControl(k kind, r *RecvRequest) *head {
	r.outstanding++
	h := &p.control(k).head
	h.words[fieldRestart], h.words[fieldSending], h.words[fieldReceiving] = uint64(r.restart), r.head.words[fieldSending], r.id
	return h
}
