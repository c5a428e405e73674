package rail

import (
	"fmt"

	"github.com/tributary-fabric/tributary/internal/core"
)

// senderState is what a SendRequest waits for.
type senderState uint8

const (
	idle        senderState = iota
	queuing                 // a path, or room at the other side
	eager                   // the completion of its MATCH
	offered                 // ACK, PUT or READ
	streaming               // the completions of its data, and then perhaps a FIN
	finishing               // the completion of its FIN
	draining                // in error: the completions of its fragments
	notifying               // the completion of its NOTIFY, and the answer
	waiting                 // the answer
	answeredAck             // the completion of its NOTIFY, after the ACK
	ending                  // the completions of its fragments, and then it is done
	gone                    // nothing: it is done
)

var senderStates = [...]string{"idle", "queuing", "eager", "offered", "streaming", "finishing", "draining", "notifying", "waiting", "answered", "ending", "gone"}

// String returns the name of the state.
func (s senderState) String() string { return senderStates[s] }

// sender is the core's part of a SendRequest.
type sender struct {
	links       links[SendRequest]
	id, peer    uint64 // the requests' numbers here and at the other side
	state       senderState
	via         kind // rndv, rget, store; load: the other side's Get
	answer      kind // ack, put or read
	sequence    uint32
	restart     uint32
	key         uint64
	sent        uint64   // bytes
	granted     uint64   // likewise
	rest        [][]byte // of a load: vectors behind Data
	outstanding int      // fragments
	hasFin      bool
	isPassive   bool // the core's own
	isWithdrawn bool
	isOver      bool // of an earlier session
	isReturned  bool // of a load: the region is not held any more
	err         error
}

// enqueue takes a request.
func (p *Peer) enqueue(s *SendRequest, via kind) {
	s.sender = sender{state: queuing, via: via}
	if s.First {
		p.queued[0].push(s)
	} else {
		p.queued[1].push(s)
	}
}

// mayHead reports whether the other side has room for an envelope, and mayBytes for bytes with it.
func (p *Peer) mayHead(isFirst bool) bool {
	most := p.allowed.heads
	if isFirst {
		most += extra(most)
	}
	return p.sent.heads-p.returned.heads < most
}

func (p *Peer) mayBytes(n int) bool {
	return p.sent.bytes-p.returned.bytes+uint64(n) <= p.allowed.bytes
}

// envelopeOf returns the envelope that a queued request takes now.
func (p *Peer) envelopeOf(s *SendRequest) kind {
	n := len(s.Data)
	switch {
	case s.via == kindStore:
		return kindStore
	case n <= p.cfg.Eager && (n == 0 || p.mayBytes(n)):
		return kindMatch
	case p.cfg.GetFrom > 0 && n >= p.cfg.GetFrom:
		return kindRget
	}
	return kindRndv
}

// sequenced counts an envelope and returns its sequence number.
func (p *Peer) sequenced(bytes int) uint32 {
	n := p.next
	p.next++
	p.sent.heads++
	p.sent.bytes += uint64(bytes)
	return n
}

// sendEnvelope sends the first fragment of a request.
func (p *Peer) sendEnvelope(s *SendRequest, k kind, i uint8) {
	s.via = k
	if k != kindMatch {
		s.id = p.sends.add(s)
		s.sequence = p.sequenced(0)
		s.key = p.keys.Uint64()
		p.transmit(p.offer(s), i)
		return
	}
	s.sequence = p.sequenced(len(s.Data))
	number, f := p.flight(kindMatch)
	f.body = s.Data
	p.matchHead(s, &f.head)
	switch {
	case s.Buffered:
		f.body, f.isOwn = append(p.spare.take(len(s.Data)), s.Data...), true
	default:
		s.state = eager
		s.id = p.sends.add(s)
		s.outstanding++
		f.head.words[fieldSending] = s.id
	}
	p.transmit(number, i)
	if s.Buffered {
		p.sentOut(s, nil)
	}
}

// matchHead fills in what identifies a message.
func (p *Peer) matchHead(s *SendRequest, h *head) {
	h.words[fieldSequence], h.words[fieldContext], h.words[fieldTag] = uint64(s.sequence), s.Context, s.Tag
	h.words[fieldRestart] = uint64(s.restart)
	h.words[fieldSending], h.words[fieldReceiving] = s.id, s.peer
}

// offer makes the RNDV, RGET or STORE of a request.
func (p *Peer) offer(s *SendRequest) uint32 {
	s.state, s.sent, s.granted = offered, 0, 0
	s.outstanding++
	number, f := p.flight(s.via)
	p.matchHead(s, &f.head)
	f.head.words[fieldSize], f.head.words[fieldKey] = uint64(len(s.Data)), s.key
	if s.via == kindStore {
		f.head.words[fieldRegion], f.head.words[fieldKey], f.head.words[fieldOffset] = s.Handle.Number, s.Handle.Key, s.Offset
	}
	return number
}

// granted takes ACK, PUT or READ: the receiver is ready.
func (p *Peer) granted(h *head) error {
	s := p.sends.get(h.words[fieldSending])
	if s == nil || s.state != offered || s.restart != h.restart() {
		p.counters.Late++
		return nil
	}
	n := h.words[fieldSize]
	isRead := h.kind == kindRead
	if n == 0 || n > uint64(len(s.Data)) || isRead != (s.via == kindRget) || h.kind == kindPut && s.via == kindStore || isRead && h.words[fieldKey] != s.key {
		return fmt.Errorf("%w: %s of %d bytes for %s of %d", ErrMalformed, h.kind, n, s.via, len(s.Data))
	}
	s.peer = h.words[fieldReceiving]
	if s.isWithdrawn {
		p.refuseReceiver(s.peer, s.restart, withdrawn)
		p.ended(s, nil)
		return nil
	}
	s.answer, s.granted = h.kind, n
	if h.kind == kindPut {
		s.key = h.words[fieldKey]
	}
	p.startStream(s)
	return nil
}

// sendData sends the next n bytes of a request.
func (p *Peer) sendData(s *SendRequest, n uint64, i uint8) {
	k := kindFrag
	switch s.answer {
	case kindPut:
		k = kindWrite
	case kindRead:
		k = kindData
	}
	number, f := p.flight(k)
	f.body = s.part(n)
	f.head.words[fieldRestart], f.head.words[fieldSending], f.head.words[fieldReceiving] = uint64(s.restart), s.id, s.peer
	f.head.words[fieldKey], f.head.words[fieldOffset] = s.key, s.sent
	s.sent += n
	p.backlog -= n
	s.outstanding++
	p.transmit(number, i)
}

// part returns the next bytes of a request, at most n: those that lie in one vector.
func (s *SendRequest) part(n uint64) []byte {
	at, v := s.sent, s.Data
	for i := 0; at >= uint64(len(v)); i++ {
		at -= uint64(len(v))
		v = s.rest[i]
	}
	return v[at:min(at+n, uint64(len(v)))]
}

// startStream lets a request send its data.
func (p *Peer) startStream(s *SendRequest) {
	s.state, s.sent = streaming, 0
	p.backlog += s.granted
	p.stream.push(s)
}

// stopStream keeps a request from sending more of its data.
func (p *Peer) stopStream(s *SendRequest) {
	if s.links.in == &p.stream {
		p.backlog -= s.granted - s.sent
		p.stream.remove(s)
	}
}

// needsFin reports whether the receiver says when it has all.
func (s *SendRequest) needsFin() bool { return s.via == kindRget || s.via == kindStore }

// advance does what a request can do now that something of it has completed.
func (p *Peer) advance(s *SendRequest) {
	switch {
	case s.state == streaming && s.sent == s.granted && s.outstanding == 0:
		switch {
		case s.needsFin() && !s.hasFin:
		case s.answer == kindPut:
			s.state = finishing
			s.outstanding++
			p.matchHead(s, &p.control(kindFin).head)
		default:
			p.ended(s, nil)
		}
	case s.state == draining && s.outstanding == 0:
		p.drained(s)
	case s.state == ending && s.outstanding == 0:
		p.ended(s, s.err)
	}
}

// finish ends a request when nothing of it is outstanding.
func (p *Peer) finish(s *SendRequest, err error) {
	p.stopStream(s)
	if !s.lends() {
		p.unhold(s)
	}
	s.state, s.err = ending, err
	p.advance(s)
}

// lends reports whether some of a request's memory is lent to the transport. A NOTIFY lends
// none, and is alone when there is one.
func (s *SendRequest) lends() bool {
	return s.outstanding > 0 && !s.isReturned && s.state != notifying && s.state != answeredAck
}

// unhold ends the use of the region of a load, which has nothing more to send.
func (p *Peer) unhold(s *SendRequest) {
	if s.via == kindLoad && !s.isReturned {
		s.isReturned = true
		p.cfg.Regions.Unhold(s.Handle)
	}
}

// ended ends a request.
func (p *Peer) ended(s *SendRequest, err error) {
	p.sends.remove(s.id)
	p.stopStream(s)
	if !s.isPassive {
		p.sentOut(s, err)
		return
	}
	if s.via == kindLoad {
		if err == nil && !s.isOver && s.sent == s.granted {
			p.counters.Sent[Load].Add(1, s.sent)
		}
		p.unhold(s)
		if !s.isOver {
			p.took(heap{heads: 1})
		}
	}
	*s = SendRequest{}
	if len(p.spare.sends) < maxSpares {
		p.spare.sends = append(p.spare.sends, s)
	}
}

// sentOut reports that a request of this host's is done.
func (p *Peer) sentOut(s *SendRequest, err error) {
	if err == nil {
		p.counters.Sent[flowOf(s.via)].Add(1, uint64(len(s.Data)))
	}
	s.sender = sender{state: gone}
	p.out.Done = append(p.out.Done, Done{Send: s, Err: err})
}

// CancelSend cancels a request: it is done with ErrCancelled, at once or when the transport
// has returned its memory, unless it is done otherwise before. It waits for no path. A receive that
// has the message fails, unless that is on its way as a whole.
func (p *Peer) CancelSend(s *SendRequest, now core.Time, out *Output) {
	p.begin(now, out)
	p.cancelSend(s)
	p.end()
}

func (p *Peer) cancelSend(s *SendRequest) {
	switch s.state {
	case queuing:
		s.links.in.remove(s)
		p.sentOut(s, ErrCancelled)
	case eager:
		p.buffer(s)
		p.sends.remove(s.id)
		p.sentOut(s, ErrCancelled)
	case offered, waiting, notifying, answeredAck, finishing:
		p.withdraw(s)
	case streaming, draining:
		if s.state == streaming {
			p.failed(s)
		}
		if s.state == draining { // still: something is outstanding
			s.isWithdrawn = true
		} else {
			p.withdraw(s)
		}
	}
}

// buffer copies the message of a request in its MATCH: it has a place among the others.
func (p *Peer) buffer(s *SendRequest) {
	for i := range p.net.flights {
		f := &p.net.flights[i]
		if f.isUsed && f.head.kind == kindMatch && f.head.words[fieldSending] == s.id {
			f.head.words[fieldSending] = 0
			f.body, f.isOwn, f.isCancelled = append(p.spare.take(len(s.Data)), s.Data...), true, true
		}
	}
}

// withdraw ends a request none of whose memory is lent. What the other side still expects of
// it a request of the core's takes over.
func (p *Peer) withdraw(s *SendRequest) {
	z := p.spare.send()
	z.Context, z.Tag, z.Data = s.Context, s.Tag, s.Data[:len(s.Data):len(s.Data)]
	z.sender = s.sender
	z.isPassive, z.isWithdrawn = true, true
	p.sends.at(s.id).item = z
	p.sentOut(s, ErrCancelled)
}
