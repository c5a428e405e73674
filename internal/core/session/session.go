package session

import (
	"net/netip"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// Input is one packet for a session, or several. Operations and epochs come by
// Start and Enter.
type Input struct {
	From   netip.AddrPort
	Packet []byte // read during Step only

	// Size, if not 0, says that Packet are packets of so many bytes each, one
	// after the other, the last of which may be shorter.
	Size int
}

// Send is one packet from a session to its parent, or a batch of them. Where an
// operation works in place, or turns its elements, and the chunk's result came in the
// same Step, Body is that result already: the packet was the answer to an old
// Want, and the parent drops it.
type Send struct {
	To   netip.AddrPort
	Head [wire.HeaderSize]byte
	Body []byte // lent until the next Step: the operation's input or a copy of the session's

	// Size, if not 0, says that this is a batch: Body are the payloads of several
	// packets, of so many bytes each, the last of which may have fewer, and
	// Heads their headers. Head means nothing then.
	Size  int
	Heads []byte // lent until Output.Reset
}

// Loss reports that the epoch's tree does not work any more, and what shows it.
type Loss struct {
	Epoch  uint32
	Parent netip.AddrPort
	Chunk  uint32        // the oldest in flight
	Said   bool          // the parent answers Lost; otherwise it does not answer at all
	Probes int           // for the chunk that had no other answer
	Over   time.Duration // since the first of them
	Quiet  time.Duration // since the parent's last packet that was not Lost; 0: none came in this epoch
}

// Disagreement reports that two members disagree about an operation.
type Disagreement struct {
	Chunk uint32
	Body  wire.ErrorBody
}

// Output is what a step brings about. The caller owns and resets it.
type Output struct {
	Sends        []Send
	Completions  []Completion
	Loss         *Loss
	Disagreement *Disagreement
	Demand       uint32 // at the lowest rank: window that the operations can use from now on; 0: as before

	// TakesBatches, which the caller sets and Reset keeps, says that it sends batches:
	// contributions of chunks that follow each other in a vector, or in the session's memory
	// where their elements are turned, are one Send then, where they go to a switch.
	TakesBatches bool
	heads        []byte // of the batches
}

// Reset empties o and keeps its memory.
func (o *Output) Reset() {
	o.Sends, o.Completions, o.heads = o.Sends[:0], o.Completions[:0], o.heads[:0]
	o.Loss, o.Disagreement, o.Demand = nil, nil, 0
}

// Counters count a session's packets.
type Counters struct {
	Sent      uint64 // contributions, first ones of an epoch
	Resent    uint64 // contributions sent again
	Probes    uint64 // probes, idle ones excluded
	Results   uint64 // results taken
	Filled    uint64 // results taken from another member
	Again     uint64 // finished chunks that a change of epoch put in flight again
	Confirmed uint64 // held numbers that were confirmed by an empty chunk
	Discarded uint64 // packets dropped: malformed, foreign, late or unasked
}

// Session is the host side of one group. Its methods are not safe for
// concurrent use.
type Session struct {
	held hold // the next batch, when something was last sent

	cfg    Config
	timing Timing

	link   *Link // behind a pointer: see wire.Secret
	frozen bool  // also before the first epoch
	rested bool  // nothing was in flight when the next operation was started
	waits  bool  // what is next waits for the members to agree, and not for the window
	last   bool  // the last barrier was started
	filled bool  // awaited results come from a tree of switches

	ring []chunk // of number n at n mod len, a power of two, at most twice Config.Window: see place

	base    uint32 // oldest number not done; all before it are done
	next    uint32 // next number to look at for sending in this epoch; base <= next <= created
	created uint32 // next number that has no place in the ring yet
	fresh   uint32 // next number that no operation has: the end of all started operations

	ops        []*operation // not yet wholly created, in order
	past       []*operation // to be used again, no more than the ring has places
	spares     [][]byte     // memory for what is kept
	turned     []byte       // likewise, of chunks whose elements are turned: place by place of the ring, so that they are batches
	turnedSize int          // bytes of a place there
	serial     uint16       // of the next operation

	flow   flow
	demand demand
	flight uint32 // numbers sent in this epoch that count as on their way
	timer  repair

	settled   uint32 // every member has all results before this number: see Forget
	isSettled bool

	counters Counters
}

// New returns a session without an epoch: Enter gives it the first one. Its
// chunks are numbered from first.
func New(cfg Config, first uint32) (*Session, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Timing == (Timing{}) {
		cfg.Timing = DefaultTiming()
	}
	return &Session{
		cfg: cfg, timing: cfg.Timing, link: new(Link), frozen: true,
		ring: make([]chunk, min(firstRing, 2*cfg.Window)),
		base: first, next: first, created: first, fresh: first,
		timer: newRepair(cfg.Timing), demand: newDemand(cfg.Rank),
	}, nil
}

// Counters returns what was counted so far.
func (s *Session) Counters() Counters { return s.counters }

// Streams reports whether more than that many contributions are on their way,
// and further ones wait until there is room: then it is a link that is waited
// for, and not an answer.
func (s *Session) Streams(most int) bool { return int(s.flight) > most && s.next != s.fresh }

// Link returns the link of the present epoch.
func (s *Session) Link() Link { return *s.link }

// Offload reports whether that leads into a tree of switches.
func (s *Session) Offload() bool { return s.link.Offload() }

// Pending reports whether an operation is unfinished.
func (s *Session) Pending() bool { return s.base != s.fresh }

// Start queues o, whose buffers are lent until its Completion. The next Step
// sends.
func (s *Session) Start(o Operation) error {
	if err := o.Validate(s.cfg); err != nil {
		return err
	}
	if s.last {
		return ErrLeft
	}
	s.rested = s.rested || !s.Pending()
	if len(o.Marks) == 0 {
		s.queue(&o)
	} else {
		a := o.agreement()
		agreement := s.queue(&a)
		s.queue(&o).awaits(agreement)
	}
	s.last = o.Last
	s.serial++
	return nil
}

// queue gives an operation its numbers.
func (s *Session) queue(o *Operation) *operation {
	p := s.operation()
	p.begin(o, s.serial, s.fresh, &s.cfg)
	s.fresh += p.chunks
	s.ops = append(s.ops, p)
	return p
}

// Step takes packets, sends what the window allows, and repairs what is due.
func (s *Session) Step(now core.Time, in []Input, out *Output) {
	before := s.counters.Results
	for i := range in {
		if in[i].Size == 0 {
			s.receive(now, &in[i], out)
			continue
		}
		s.receiveBatch(now, &in[i], out)
	}
	s.pump(now, out)
	s.repair(now, out)
	s.demanded(now, uint32(s.counters.Results-before), out)
}

// Deadline returns the next moment at which the session wants to be stepped.
func (s *Session) Deadline() core.Time {
	if s.frozen {
		return core.Never
	}
	return s.timer.deadline().Earlier(s.demand.until)
}

// Base returns the oldest number whose result is missing: this member has all
// before it.
func (s *Session) Base() uint32 { return s.base }

func (s *Session) at(n uint32) *chunk { return &s.ring[n&uint32(len(s.ring)-1)] }

// pump sends every chunk that the window allows.
func (s *Session) pump(now core.Time, out *Output) {
	if s.frozen {
		return
	}
	var held hold
	limit, from := s.base+s.link.Window, s.next
	for s.next != s.fresh && wire.Newer(limit, s.next) && s.flight < s.flow.size && !s.unagreed(s.next) {
		if s.next == s.created {
			if held = s.holdsBack(limit); held != free {
				break
			}
			if s.contributions(now, limit, out) {
				continue
			}
			s.create()
		}
		c := s.at(s.next)
		if c.pending() && !c.sent {
			if c.op.Last && !c.given && c.number != s.base {
				return // the last barrier says that every earlier result is there
			}
			c.sent = true
			s.counters.Sent++
			s.contribute(now, c, out)
			if c.number == s.base {
				s.timer.progress(now, c, false)
			}
		}
		s.next++
	}
	s.waits = s.next != s.fresh && s.unagreed(s.next)
	if s.next != s.fresh && (s.flight >= s.flow.size || held == byFlow) && !s.waits {
		s.flow.round.full = true
	}
	if s.rested && s.next != from {
		s.rested = false
		s.flow.pause(s.next)
	}
}

// holdsBack returns what keeps the next chunk back, if it is the first of a batch of its
// operation: long vectors go in whole batches as long as the window has room for several,
// so that those of all members begin and end alike, and a switch completes all of a batch
// at once.
func (s *Session) holdsBack(limit uint32) hold {
	p := s.ops[0]
	i := s.next - p.first
	switch {
	case i%wire.BatchChunks != 0 || p.chunks < 2*wire.BatchChunks || p.chunks-i < wire.BatchChunks ||
		s.flight == 0 || s.flow.size < 2*wire.BatchChunks || s.flow.byLoss: // bursts get less of a queue that others fill
		return free
	case limit-s.next < wire.BatchChunks:
		return byWindow
	case s.flow.size-s.flight < wire.BatchChunks:
		return byFlow
	}
	return free
}

// hold is what keeps a batch back.
type hold uint8

const (
	free     hold = iota // nothing does
	byWindow             // W
	byFlow               // the window of congestion control
)

// unagreed reports whether number n, of a sum in fixed point, must wait until the members have agreed on its
// exponents.
func (s *Session) unagreed(n uint32) bool {
	var p *operation
	if n == s.created {
		p = s.ops[0]
	} else if c := s.at(n); c.state == flying && !c.given {
		p = c.op
	}
	return p != nil && min(int(n-p.first+1)*p.perItem, p.Elements) > p.agreedBefore(s.base)
}

// create gives number s.created its place in the ring, after what was there has given its memory back.
func (s *Session) create() *chunk {
	p, c := s.ops[0], s.place(s.created)
	s.disown(c)
	if old := c.op; old != nil && c.number+1 == old.end() && len(s.past) < len(s.ring) {
		s.past = append(s.past, old) // nothing refers to it any more
	}
	*c = chunk{number: s.created, state: flying, op: p}
	p.cut(c)
	if s.created == p.first {
		p.begun = s.link.Epoch
	}
	if s.created++; s.created == p.end() {
		s.ops = slices.Delete(s.ops, 0, 1)
	}
	return c
}

// contribute sends c's contribution to the parent.
func (s *Session) contribute(now core.Time, c *chunk, out *Output) {
	s.reported(now, c)
	if c.credit {
		send := out.send(s.link.Parent)
		h := s.header(wire.Contribution, c.number)
		h.Signature, h.Flags = c.signature(), wire.Sink
		h.Put(send.Head[:])
		return
	}
	body, exponent := s.input(c)
	s.stamp(c.op)
	head := out.place(s, body)
	c.op.up.Put(head, c.flags(), c.number, c.elements, exponent)
}

func (s *Session) header(t wire.Type, n uint32) wire.Header {
	return wire.Header{
		Type: t, Child: s.link.Index, Group: s.link.Group, Epoch: s.link.Epoch,
		Cookie: s.link.Cookie, Chunk: n, Lowest: s.cfg.Rank,
	}
}

// receive takes one packet from the parent.
func (s *Session) receive(now core.Time, in *Input, out *Output) {
	if c, exponent := s.awaits(in); c != nil {
		s.timer.sign(now)
		s.counters.Results++
		s.landed(now, c)
		s.finish(now, c, in.Packet[wire.HeaderSize:], exponent, s.link.Offload(), out)
		return
	}
	var h wire.Header
	payload, fault := h.Decode(in.Packet)
	if fault != wire.NoFault || s.frozen || !s.admits(&h, in.From) {
		s.counters.Discarded++
		return
	}
	if h.Type == wire.Error {
		s.disagree(&h, payload, out)
		return
	}
	noSign := h.Type == wire.Lost && s.link.Index == 0
	if !noSign {
		s.timer.sign(now)
	}
	// Answers for a chunk that is not in flight are ignored.
	if wire.Newer(s.base, h.Chunk) || !wire.Newer(s.next, h.Chunk) {
		s.counters.Discarded++
		return
	}
	c := s.at(h.Chunk)
	if !c.pending() || !c.sent {
		s.counters.Discarded++
		return
	}
	switch h.Type {
	case wire.Result:
		s.result(now, c, &h, payload, out)
	case wire.Want:
		s.wanted(now, c, out)
	case wire.Heard, wire.Lost:
		if noSign {
			s.timer.said = true
			return // as if it had not answered
		}
		s.heard(now, c)
	}
}

// awaits returns the chunk whose result in is, with its exponent, as bytes show
// that it is the one which the member waits for; nil for all else, which
// receive looks at field by field.
func (s *Session) awaits(in *Input) (c *chunk, exponent int8) {
	if s.frozen || len(in.Packet) < wire.HeaderSize || in.From != s.link.Parent {
		return nil, 0
	}
	n, exponent := wire.PeekChunk(in.Packet)
	c = s.at(n)
	if c.number != n || c.state != flying || c.credit || !c.sent || wire.Newer(s.base, n) || !wire.Newer(s.next, n) {
		return nil, 0
	}
	p := c.op
	size := 0
	if c.sink {
		size = c.size()
	}
	if len(in.Packet) != wire.HeaderSize+size || exponent != 0 && !p.block || !p.down.Fits(in.Packet, c.flags()&wire.Sink, c.elements) {
		return nil, 0
	}
	return c, exponent
}

func (s *Session) admits(h *wire.Header, from netip.AddrPort) bool {
	return from == s.link.Parent && h.Group == s.link.Group &&
		h.Epoch == s.link.Epoch && h.Cookie == s.link.Cookie && h.Child == s.link.Index
}

func (s *Session) disagree(h *wire.Header, payload []byte, out *Output) {
	var body wire.ErrorBody
	if wire.Newer(s.base, h.Chunk) || !body.Decode(payload) {
		s.counters.Discarded++
		return
	}
	if out.Disagreement == nil {
		out.Disagreement = &Disagreement{Chunk: h.Chunk, Body: body}
	}
}

// result takes c's result and moves the window.
func (s *Session) result(now core.Time, c *chunk, h *wire.Header, payload []byte, out *Output) {
	if h.Signature != c.signature() || h.Flags&wire.Sink != 0 != (c.sink || c.credit) {
		s.counters.Discarded++
		return
	}
	s.counters.Results++
	s.landed(now, c)
	if c.credit {
		c.credit = false
		s.counters.Confirmed++
		s.settle(now, c)
		return
	}
	s.finish(now, c, payload, h.Exponent, s.link.Offload(), out)
}

// finish ends c with its result: data, with its exponent, where the member is a
// sink.
func (s *Session) finish(now core.Time, c *chunk, data []byte, exponent int8, offload bool, out *Output) {
	p := c.op
	if !c.sink {
		data, exponent = s.input(c)
	}
	s.keep(c, data, exponent)
	c.state = done
	if c.given {
		s.settle(now, c)
		return
	}
	if c.sink {
		out, skip := p.output(c)
		if data = data[min(skip, len(data)):]; p.coded {
			p.decode(out, data[:len(out)/p.vector*p.width], exponent, c.offset/p.width)
		} else {
			copy(out, data)
		}
	}
	c.given = true
	p.missing--
	if offload {
		p.offload++
	}
	s.settle(now, c)
	if p.missing == 0 {
		s.complete(p, out)
	}
}

// complete ends p, all of whose chunks are done.
func (s *Session) complete(p *operation, out *Output) {
	if sum := p.sum; sum != nil {
		sum.before = Completion{Chunks: p.chunks, OffloadDone: p.offload, FirstEpoch: p.begun}
	} else {
		first := p.begun
		if p.before.Chunks > 0 {
			first = p.before.FirstEpoch
		}
		out.Completions = append(out.Completions, Completion{
			ID: p.ID, Chunks: p.chunks + p.before.Chunks, OffloadDone: p.offload + p.before.OffloadDone,
			FirstEpoch: first, LastEpoch: s.link.Epoch,
		})
	}
	s.release(p)
}

// settle moves the base if it was c that held it.
func (s *Session) settle(now core.Time, c *chunk) {
	if c.number == s.base {
		s.advance(now)
	}
}

// advance moves the base over all that is done.
func (s *Session) advance(now core.Time) {
	for s.base != s.created && s.at(s.base).passed() {
		s.base++
	}
	if wire.Newer(s.base, s.next) {
		s.next = s.base
	}
	oldest := s.at(s.base)
	s.timer.progress(now, oldest, s.isTail(oldest))
}
