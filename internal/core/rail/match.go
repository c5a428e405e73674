package rail

import (
	"fmt"

	"github.com/tributary-fabric/tributary/internal/core"
)

const (
	buckets    = 16
	reordering = 2 * maxHeads // sequence numbers further ahead are malformed
)

// matching has the receives without a message and the messages without a receive. Those of
// a context are in one bucket, in their order.
type matching struct {
	waiting  [buckets]list[RecvRequest] // posted
	arrived  [buckets]list[RecvRequest] // unmatched
	ahead    list[RecvRequest]          // by sequence number: one before them is missing
	expected uint32                     // the next sequence number
	held     heap                       // by arrived and ahead, of this session
	kept     heap                       // by arrived, of earlier ones
}

func (m *matching) init(of func(*RecvRequest) *links[RecvRequest], first uint32) {
	for i := range buckets {
		m.waiting[i].of, m.arrived[i].of = of, of
	}
	m.ahead.of = of
	m.expected = first
}

func bucket(context uint64) uint64 { return context * 0x9e3779b97f4a7c15 >> 60 }

// isPast reports whether an envelope has been taken.
func (m *matching) isPast(sequence uint32) bool { return int32(sequence-m.expected) < 0 }

// unexpected returns the first message for a receive; nil: none.
func (m *matching) unexpected(context uint64, tag, ignore uint64) *RecvRequest {
	u := m.arrived[bucket(context)].first
	for u != nil && (u.Context != context || (u.Tag^tag)&^ignore != 0) {
		u = u.links.next
	}
	return u
}

// receive returns the first receive for a message; nil: none.
func (m *matching) receive(context uint64, tag uint64) *RecvRequest {
	r := m.waiting[bucket(context)].first
	for r != nil && (r.Context != context || (r.Tag^tag)&^r.Ignore != 0) {
		r = r.links.next
	}
	return r
}

// post takes a receive.
func (p *Peer) post(r *RecvRequest) {
	r.receiver = receiver{state: posted}
	u := p.box.unexpected(r.Context, r.Tag, r.Ignore)
	if u == nil {
		p.box.waiting[bucket(r.Context)].push(r)
		return
	}
	p.box.arrived[bucket(r.Context)].remove(u)
	p.drop(u)
	if !u.isKept {
		p.took(heap{uint64(len(u.buffer)), 1})
	}
	p.adopt(r, u)
}

// adopt gives a held message to a receive.
func (p *Peer) adopt(r, u *RecvRequest) {
	r.receiver = u.receiver
	u.buffer = nil
	p.spare.recv(u)
	p.matched(r, r.buffer)
}

// matched begins a receive that has a message.
func (p *Peer) matched(r *RecvRequest, body []byte) {
	if r.head.kind != kindMatch {
		r.id = p.recvs.add(r)
		p.begun(r)
		return
	}
	n := copy(r.Data, body)
	var err error
	if n < len(body) {
		err = ErrTruncated
	}
	d := Done{Recv: r, Err: err, N: n, Size: uint64(len(body)), Tag: r.head.words[fieldTag]}
	p.spare.give(r.buffer)
	r.receiver = receiver{state: recvGone}
	p.counters.Received[Eager].Add(1, uint64(n))
	p.out.Done = append(p.out.Done, d)
}

// find returns the message that a fragment of its sender's is about; nil: it is not there
// yet, or is gone.
func (p *Peer) find(h *head) *RecvRequest {
	from := h.words[fieldSending]
	if id := h.words[fieldReceiving]; id != 0 {
		r := p.recvs.get(id)
		if r != nil && r.head.words[fieldSending] != from && (r.head.kind != kindLoad || r.head.words[fieldSending] != 0) {
			return nil
		}
		return r
	}
	for i := range p.recvs.places {
		if r := p.recvs.places[i].item; r != nil && r.head.kind != kindLoad && r.head.words[fieldSending] == from {
			return r
		}
	}
	for i := range buckets {
		if r := fromSender(&p.box.arrived[i], from); r != nil {
			return r
		}
	}
	return fromSender(&p.box.ahead, from)
}

// fromSender returns the message of a sender's request; nil: none.
func fromSender(l *list[RecvRequest], from uint64) *RecvRequest {
	u := l.first
	for u != nil && (u.head.kind == kindMatch || u.head.kind == kindLoad || u.head.words[fieldSending] != from) {
		u = u.links.next
	}
	return u
}

// envelope takes MATCH, RNDV, RGET, STORE or LOAD.
func (p *Peer) envelope(h *head, body []byte) error {
	if canRestart := h.kind != kindMatch && h.kind != kindLoad; canRestart && (h.restart() != 0 || h.words[fieldReceiving] != 0) {
		switch r := p.find(h); {
		case r != nil:
			p.restarted(r, h)
			return nil
		case h.words[fieldReceiving] != 0 || p.box.isPast(h.sequence()):
			p.answerNack(h, complete)
			return nil
		}
	}
	m := &p.box
	ahead := int32(h.sequence() - m.expected)
	switch {
	case ahead < 0:
		p.counters.Duplicates++
		return nil
	case ahead >= reordering:
		return fmt.Errorf("%w: sequence number %d, %d is expected", ErrMalformed, h.sequence(), m.expected)
	case ahead > 0:
		return p.holdAhead(h, body)
	}
	if err := p.arrives(len(body)); err != nil {
		return err
	}
	m.expected++
	p.admit(h, body)
	for u := m.ahead.first; u != nil && u.head.sequence() == m.expected; u = m.ahead.first {
		m.expected++
		m.ahead.remove(u)
		p.admitHeld(u)
	}
	return nil
}

// restarted takes the envelope of a restart.
func (p *Peer) restarted(r *RecvRequest, h *head) {
	ahead := int32(h.restart() - r.restart)
	switch {
	case r.id == 0 && ahead >= 0:
		r.restart, r.isAwaited = h.restart(), false
	case r.state == ready && ahead == 0:
		p.grant(r)
	case r.state == resetting && ahead == 0: // another NOTIFY has been answered before the message came
		r.isThere = true
	case r.id != 0 && ahead > 0:
		p.reset(r, h.restart(), true)
	default:
		p.counters.Late++
	}
}

// admit takes an envelope in its turn.
func (p *Peer) admit(h *head, body []byte) {
	switch h.kind {
	case kindStore:
		p.serveStore(h, h.restart(), false)
		return
	case kindLoad:
		p.serveLoad(h)
		return
	}
	r := p.box.receive(h.context(), h.words[fieldTag])
	if r == nil {
		p.counters.Unexpected++
		if !p.accepts(h.context()) {
			p.discard(h, len(body))
			return
		}
		u := p.record(h, body)
		p.box.arrived[bucket(u.Context)].push(u)
		return
	}
	r.links.in.remove(r)
	r.head, r.restart = *h, h.restart()
	p.took(heap{uint64(len(body)), 1})
	p.matched(r, body)
}

// admitHeld takes an envelope that came ahead of its turn.
func (p *Peer) admitHeld(u *RecvRequest) {
	switch u.head.kind {
	case kindStore, kindLoad:
		p.drop(u)
		if u.head.kind == kindStore {
			p.serveStore(&u.head, u.restart, u.isAwaited)
		} else {
			p.serveLoad(&u.head)
		}
		p.spare.recv(u)
		return
	}
	r := p.box.receive(u.Context, u.Tag)
	if r == nil {
		p.counters.Unexpected++
		if !p.accepts(u.Context) {
			p.drop(u)
			p.discardHeld(u)
			return
		}
		p.box.arrived[bucket(u.Context)].push(u)
		return
	}
	r.links.in.remove(r)
	p.drop(u)
	p.took(heap{uint64(len(u.buffer)), 1})
	p.adopt(r, u)
}

// accepts reports whether messages of a context that no receive awaits are kept.
func (p *Peer) accepts(context uint64) bool { return p.cfg.Accepts == nil || p.cfg.Accepts(context) }

// discard ends a message that nobody will receive: its sender is done as if it had arrived.
func (p *Peer) discard(h *head, bytes int) {
	p.counters.Discarded++
	p.took(heap{uint64(bytes), 1})
	if h.kind != kindMatch {
		p.answerNack(h, complete)
	}
}

// discardHeld is discard for a message that is held, and no longer counted.
func (p *Peer) discardHeld(u *RecvRequest) {
	h := u.head
	h.words[fieldRestart] = uint64(u.restart)
	if !u.isKept {
		p.discard(&h, len(u.buffer))
	}
	p.spare.give(u.buffer)
	u.buffer = nil
	p.spare.recv(u)
}

// EndSpace cancels the requests of the contexts of a space, as CancelSend and CancelRecv do, and
// drops its messages that no receive has matched. Accepts is false of it by now.
func (p *Peer) EndSpace(space uint64, now core.Time, out *Output) {
	p.begin(now, out)
	for i := range p.queued {
		for s := p.queued[i].first; s != nil; {
			next := s.links.next
			if SpaceOf(s.Context) == space && s.via == kindRndv {
				p.cancelSend(s)
			}
			s = next
		}
	}
	for i := range p.sends.places {
		if s := p.sends.places[i].item; s != nil && SpaceOf(s.Context) == space && !s.isPassive && s.via != kindStore {
			p.cancelSend(s)
		}
	}
	for i := range p.recvs.places {
		if r := p.recvs.places[i].item; r != nil && SpaceOf(r.Context) == space && !r.isPassive && r.head.kind != kindLoad {
			p.cancelRecv(r)
		}
	}
	for b := range buckets {
		for r := p.box.waiting[b].first; r != nil; {
			next := r.links.next
			if SpaceOf(r.Context) == space {
				p.cancelRecv(r)
			}
			r = next
		}
		for u := p.box.arrived[b].first; u != nil; {
			next := u.links.next
			if SpaceOf(u.Context) == space {
				p.box.arrived[b].remove(u)
				p.drop(u)
				p.discardHeld(u)
			}
			u = next
		}
	}
	p.end()
}

// holdAhead keeps an envelope that came ahead of its turn.
func (p *Peer) holdAhead(h *head, body []byte) error {
	m := &p.box
	before := m.ahead.last // look from the end: mostly it belongs there
	var after *RecvRequest
	for before != nil && int32(before.head.sequence()-h.sequence()) > 0 {
		after, before = before, before.links.prev
	}
	if before != nil && before.head.sequence() == h.sequence() {
		p.counters.Duplicates++
		return nil
	}
	if err := p.arrives(len(body)); err != nil {
		return err
	}
	m.ahead.insert(p.record(h, body), after)
	return nil
}

// arrives counts a new envelope. The other side sends no more than this side has room for.
func (p *Peer) arrives(bytes int) error {
	if p.came.bytes-p.reported.bytes+uint64(bytes) > uint64(p.cfg.MaxUnexpected) || p.came.heads-p.reported.heads >= uint64(p.cfg.MaxHeads)+extra(uint64(p.cfg.MaxHeads)) {
		return fmt.Errorf("%w: more than %d bytes in %d messages without CREDIT", ErrMalformed, p.cfg.MaxUnexpected, p.cfg.MaxHeads)
	}
	p.came.add(bytes)
	return nil
}

// record keeps a message that no receive has matched.
func (p *Peer) record(h *head, body []byte) *RecvRequest {
	p.box.held.add(len(body))
	u := p.spare.receive()
	u.Context, u.Tag = h.context(), h.words[fieldTag]
	u.receiver = receiver{state: unmatched, head: *h, restart: h.restart()}
	if len(body) > 0 {
		u.buffer = append(p.spare.take(len(body)), body...)
	}
	return u
}

// drop notes that a message is no longer held.
func (p *Peer) drop(u *RecvRequest) {
	h := &p.box.held
	if u.isKept {
		h = &p.box.kept
	}
	h.bytes -= uint64(len(u.buffer))
	h.heads--
}
