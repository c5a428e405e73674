package rail

import (
	"fmt"

	"github.com/tributary-fabric/tributary/internal/core"
)

// Peer is this host's half of the messages between it and one other. Its methods are not
// safe for concurrent use. What they bring about they append to out.
type Peer struct {
	cfg  Config
	keys core.Chance
	net  transmitter

	sends  table[SendRequest]
	recvs  table[RecvRequest]   // matched, and of this host's Get
	queued [2]list[SendRequest] // whose envelope has not been sent: those that go First, others
	loads  list[RecvRequest]    // likewise
	stream list[SendRequest]    // that have data to send, in turn
	// backlog is how many bytes stream has to send.
	backlog uint64
	again   core.Time // when to choose a path again
	box     matching
	spare   spares

	session  uint32 // changes with Fail
	next     uint32 // sequence number of the next envelope
	allowed  heap   // by the other side: not matched there
	sent     heap   // since the session began
	came     heap   // of the other side's, likewise
	taken    heap   // of those
	lent     uint64 // envelopes that are reported, though not taken
	reported heap   // of those that came: taken, or lent
	returned heap   // of sent, as the other side has reported
	// mustReport: a CREDIT may be lost.
	mustReport bool
	counters   Counters

	now core.Time
	out *Output
}

// heap is an amount of memory: bytes of messages, and envelopes.
type heap struct{ bytes, heads uint64 }

// add adds an envelope with that many bytes.
func (h *heap) add(bytes int) {
	h.bytes += uint64(bytes)
	h.heads++
}

// New returns a Peer without a path. The error wraps ErrConfig.
func New(c Config) (*Peer, error) { return newPeer(c, func() scheduler { return &Rails{} }) }

func newPeer(c Config, choice func() scheduler) (*Peer, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.filled()
	p := &Peer{cfg: c, keys: core.Chance(c.Seed), next: c.FirstSequence, again: core.Never}
	p.allowed = heap{uint64(c.MaxUnexpected), uint64(c.MaxHeads)}
	for i := range p.net.choice {
		p.net.choice[i] = choice()
	}
	sends := func(s *SendRequest) *links[SendRequest] { return &s.links }
	recvs := func(r *RecvRequest) *links[RecvRequest] { return &r.links }
	p.queued[0].of, p.queued[1].of, p.stream.of, p.loads.of = sends, sends, sends, recvs
	p.box.init(recvs, c.FirstSequence)
	return p, nil
}

// Counters returns what was counted.
func (p *Peer) Counters() Counters { return p.counters }

// Window says how much the other side lets this one have unmatched there. Default: what
// this side allows.
func (p *Peer) Window(bytes, heads int) { p.allowed = heap{uint64(bytes), uint64(heads)} }

// Held returns what this side has of the other's that no receive has matched, also of what
// was sent in earlier sessions.
func (p *Peer) Held() (bytes, heads int) {
	m := &p.box
	return int(m.held.bytes + m.kept.bytes), int(m.held.heads + m.kept.heads)
}

// begin and end enclose every call.
func (p *Peer) begin(now core.Time, out *Output) { p.now, p.out = now, out }

func (p *Peer) end() {
	p.report()
	p.pump()
	p.out = nil
}

// Send sends a message.
func (p *Peer) Send(s *SendRequest, now core.Time, out *Output) {
	p.begin(now, out)
	p.enqueue(s, kindRndv)
	p.end()
}

// Put stores Data in the other side's memory. Its Handle and Offset say where.
func (p *Peer) Put(s *SendRequest, now core.Time, out *Output) {
	p.begin(now, out)
	if len(s.Data) == 0 {
		out.Done = append(out.Done, Done{Send: s})
	} else {
		p.enqueue(s, kindStore)
	}
	p.end()
}

// Recv receives a message into Data.
func (p *Peer) Recv(r *RecvRequest, now core.Time, out *Output) {
	p.begin(now, out)
	p.post(r)
	p.end()
}

// Get loads from the other side's memory into Data. Its Handle and Offset say from where.
func (p *Peer) Get(r *RecvRequest, now core.Time, out *Output) {
	p.begin(now, out)
	if len(r.Data) == 0 {
		out.Done = append(out.Done, Done{Recv: r})
	} else {
		r.receiver = receiver{state: queuingLoad}
		p.loads.push(r)
	}
	p.end()
}

// Probe returns the first message that a receive would match.
func (p *Peer) Probe(context uint64, tag, ignore uint64) (Envelope, bool) {
	u := p.box.unexpected(context, tag, ignore)
	if u == nil {
		return Envelope{}, false
	}
	return Envelope{Tag: u.head.words[fieldTag], Size: u.size()}, true
}

// Arrived takes a fragment that has come on a path. An error wraps ErrMalformed.
func (p *Peer) Arrived(path uint8, class Class, b []byte, now core.Time, out *Output) error {
	p.begin(now, out)
	var h head
	body, err := h.parse(b)
	if err == nil {
		err = p.take(class, &h, body)
	}
	if err == nil && p.net.replies > maxReplies {
		err = fmt.Errorf("%w: %d answers are not acknowledged", ErrMalformed, p.net.replies)
	}
	p.hasTaken(err)
	return err
}

// Placed takes a fragment of class Fragment and so many bytes, whose body lies where Place has said.
// An error wraps ErrMalformed.
func (p *Peer) Placed(b []byte, size int, now core.Time, out *Output) error {
	p.begin(now, out)
	var h head
	_, err := h.parse(b)
	if err == nil {
		err = p.arrived(&h, size-layouts[h.kind].size, nil)
	}
	p.hasTaken(err)
	return err
}

// hasTaken ends a call that has taken a fragment.
func (p *Peer) hasTaken(err error) {
	if err != nil {
		p.counters.Malformed++
	}
	p.end()
}

// take takes a fragment.
func (p *Peer) take(class Class, h *head, body []byte) error {
	if class != layouts[h.kind].class {
		return fmt.Errorf("%w: %s in the class of %ss", ErrMalformed, h.kind, class)
	}
	switch h.kind {
	case kindMatch, kindRndv, kindRget, kindStore, kindLoad:
		return p.envelope(h, body)
	case kindAck, kindPut, kindRead:
		return p.granted(h)
	case kindFrag, kindWrite, kindData:
		return p.arrived(h, len(body), body)
	case kindFin:
		p.finished(h)
	case kindRecvFin:
		p.recvFinished(h)
	case kindNotify:
		p.notified(h)
	case kindRecvErr:
		p.recvErrored(h)
	case kindRestartAck, kindNack:
		p.answered(h)
	case kindRefused:
		p.wasRefused(h)
	case kindBringDown, kindKick:
		p.aboutPath(h)
	case kindCredit:
		return p.credited(h)
	}
	return nil
}
