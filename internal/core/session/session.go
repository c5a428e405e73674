package session

import (
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// Input is one packet for a session. Operations and epochs come by Start and
// Enter.
type Input struct {
	From   netip.AddrPort
	Packet []byte // read during Step only
}

// Send is one packet from a session to its parent. Where an operation works in
// place, or on Block32, and the chunk's result came in the same Step, Body is
// that result already: the packet was the answer to an old Want, and the parent
// drops it.
type Send struct {
	To   netip.AddrPort
	Head [wire.HeaderSize]byte
	Body []byte // lent until the next Step: the operation's input or a copy of the session's
}

// Loss tells that the epoch's tree does not work any more.
type Loss struct {
	Epoch uint32
	Chunk uint32 // the chunk that showed it
	Said  bool   // the parent answered Lost; otherwise it did not answer at all
}

// Disagreement tells that two members disagree about an operation.
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
}

// Reset empties o and keeps its memory.
func (o *Output) Reset() {
	*o = Output{Sends: o.Sends[:0], Completions: o.Completions[:0]}
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
	Discarded uint64 // packets dropped: unsound, foreign, late or unasked
}

// Session is the host side of one group. Its methods are not safe for
// concurrent use.
type Session struct {
	cfg    Config
	timing Timing

	link   Link
	frozen bool // also before the first epoch
	last   bool // the last barrier was started
	filled bool // awaited results come from a tree of switches

	ring []chunk // of number n at n mod len; len is twice Config.Window, a power of two

	base    uint32 // oldest number not done; all before it are done
	next    uint32 // next number to look at for sending in this epoch; base <= next <= created
	created uint32 // next number that has no place in the ring yet
	fresh   uint32 // next number that no operation has: the end of all started operations

	ops    []*operation // not yet wholly created, in order
	serial uint16       // of the next operation

	flow   flow
	flight uint32 // numbers sent in this epoch that count as on their way
	timer  repair

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
		cfg: cfg, timing: cfg.Timing, frozen: true,
		ring: make([]chunk, 2*cfg.Window),
		base: first, next: first, created: first, fresh: first,
		timer: newRepair(cfg.Timing),
	}, nil
}

// Counters returns what was counted so far.
func (s *Session) Counters() Counters { return s.counters }

// Link returns the link of the present epoch.
func (s *Session) Link() Link { return s.link }

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
	p := newOperation(o, s.serial, s.fresh, s.cfg.ChunkBytes)
	s.last = o.Last
	s.serial++
	s.fresh += p.chunks
	s.ops = append(s.ops, p)
	return nil
}

// Step takes packets, sends what the window allows, and repairs what is due.
func (s *Session) Step(now core.Time, in []Input, out *Output) {
	for i := range in {
		s.receive(now, &in[i], out)
	}
	s.pump(now, out)
	s.repair(now, out)
}

// Deadline returns the next moment at which the session wants to be stepped.
func (s *Session) Deadline() core.Time {
	if s.frozen {
		return core.Never
	}
	return s.timer.deadline()
}

func (s *Session) at(n uint32) *chunk { return &s.ring[n&uint32(len(s.ring)-1)] }

// pump sends every chunk that the window allows.
func (s *Session) pump(now core.Time, out *Output) {
	if s.frozen {
		return
	}
	limit, most := s.base+s.link.Window, s.flow.window(s.link.Window)
	for s.next != s.fresh && wire.Newer(limit, s.next) && s.flight < most {
		if s.next == s.created {
			s.create()
		}
		c := s.at(s.next)
		if c.pending() && !c.sent {
			if c.op != nil && c.op.Last && c.number != s.base {
				return // the last barrier says that every earlier result is there
			}
			c.sent = true
			s.counters.Sent++
			s.contribute(now, c, out)
			if c.number == s.base {
				s.timer.progress(now, c)
			}
		}
		s.next++
	}
}

// create gives number s.created its place in the ring.
func (s *Session) create() {
	p := s.ops[0]
	i := s.created - p.first
	elements, offset := p.span(i)
	c := s.at(s.created)
	*c = chunk{
		number: s.created, state: flying, op: p, sig: p.sig, offset: offset,
		source: p.Source(s.cfg.Rank), sink: p.Sink(s.cfg.Rank), kept: c.kept[:0],
	}
	c.sig.ChunkElements = uint16(elements)
	if i == 0 {
		p.begun = s.link.Epoch
	}
	s.created++
	if i+1 == p.chunks {
		s.ops[0] = nil // it holds the caller's vectors
		s.ops = s.ops[1:]
	}
}

// contribute sends c's contribution to the parent.
func (s *Session) contribute(now core.Time, c *chunk, out *Output) {
	s.told(now, c)
	h := s.header(wire.Contribution, c.number)
	send := Send{To: s.link.Parent}
	if h.Signature = c.signature(); c.credit {
		h.Flags = wire.Sink
	} else {
		send.Body, h.Exponent = s.input(c)
		if c.sink {
			h.Flags |= wire.Sink
		}
		if c.source {
			h.Flags |= wire.Source
		}
	}
	h.Put(send.Head[:])
	out.Sends = append(out.Sends, send)
}

func (s *Session) header(t wire.Type, n uint32) wire.Header {
	return wire.Header{
		Type: t, Child: s.link.Index, Group: s.link.Group, Epoch: s.link.Epoch,
		Cookie: s.link.Cookie, Tree: s.link.Tree, Chunk: n, Lowest: s.cfg.Rank,
	}
}

// receive takes one packet from the parent.
func (s *Session) receive(now core.Time, in *Input, out *Output) {
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
	s.timer.silent = 0
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
	case wire.Heard:
		s.heard(now, c)
	case wire.Lost:
		s.lose(c.number, true, out)
	}
}

func (s *Session) admits(h *wire.Header, from netip.AddrPort) bool {
	return from == s.link.Parent && h.Group == s.link.Group && h.Tree == s.link.Tree &&
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
	if !c.sink {
		data, exponent = s.input(c)
	}
	// A chunk reduced again contributes from c.kept and may get its result
	// from there: then the copy is onto itself.
	c.kept, c.exponent = append(c.kept[:0], data...), exponent
	if p := c.op; p != nil {
		switch {
		case c.sink && c.sig.Element == reduce.Block32:
			reduce.DecodeBlock(p.Out[c.offset:c.offset+len(data)], data, exponent)
		case c.sink:
			copy(p.Out[c.offset:], data)
		}
		c.op = nil
		p.missing--
		if offload {
			p.offload++
		}
		if p.missing == 0 {
			out.Completions = append(out.Completions, Completion{
				ID: p.ID, Chunks: p.chunks, OffloadDone: p.offload,
				FirstEpoch: p.begun, LastEpoch: s.link.Epoch,
			})
		}
	}
	c.state = done
	s.settle(now, c)
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
	s.timer.progress(now, s.at(s.base))
}
