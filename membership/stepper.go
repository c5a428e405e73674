package membership

import (
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/hierarchy"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/core/zone"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// stepper is the core as the loop steps it, and what the loop alone has to do
// with. What it does in Step and apply happens on the loop's goroutine.
type stepper struct {
	n         *Node
	core      *zone.Core
	directory *member.Directory
	wire      wire

	tier *tier // nil: the node has no part in a hierarchy

	streams   map[member.Link]*stream
	strangers []*stream            // of these, those that others have made and that are not greeted, the oldest first
	dialing   map[member.Link]bool // true: the core wants it no more
	next      member.Link          // of who calls next: an odd number

	inputs  []member.Input
	scratch []byte
	raw     []*[]byte // of the inputs: returned after the step
	homes   []home    // by Index; what each ID says is read once
	left    bool

	why error // ErrSuperseded or ErrName once the core says so
}

// home is where a node is.
type home struct {
	id gossip.ID
	at netip.AddrPort
}

// Step implements runner.Core.
func (s *stepper) Step(now core.Time, items []item, out *member.Output) {
	s.inputs = s.inputs[:0]
	for i := range items {
		s.take(&items[i])
	}
	s.core.Step(now, s.inputs, out)
	clear(s.inputs)
	if s.tier != nil && !out.Stopped {
		s.tier.step(now, out)
	}
	for i, b := range s.raw {
		s.n.buffers.put(b)
		s.raw[i] = nil
	}
	s.raw = s.raw[:0]
}

// members returns the part of the core that knows who is there.
func (s *stepper) members() *member.Core { return s.core.Members() }

// Deadline implements runner.Core.
func (s *stepper) Deadline() core.Time {
	if s.left {
		return core.Never
	}
	if s.tier != nil {
		return s.core.Deadline().Earlier(s.tier.deadline())
	}
	return s.core.Deadline()
}

// take turns an item into the core's inputs.
func (s *stepper) take(it *item) {
	if it.raw != nil {
		s.raw = append(s.raw, it.raw)
	}
	switch it.kind {
	case called:
		s.called(it.conn)
	case dialled:
		s.dialled(it)
	case dialFailed:
		s.n.log.Debug("a dial failed", slog.Any("error", it.err))
		s.dialled(it)
	case preambled:
		s.preambled(it.stream, *it.raw)
	case frameCame:
		s.frame(it.stream, *it.raw)
	case datagramCame:
		s.datagram(it.from, *it.raw)
	case ended:
		s.ended(it.stream, it.err)
	case departs:
		s.input(member.Input{Kind: member.Depart, Exit: gossip.Exit{Given: true, Code: it.exit}})
	}
}

func (s *stepper) input(in member.Input) { s.inputs = append(s.inputs, in) }

// called takes a connection that somebody has made. Who says nothing valid has
// to make room for those who come after: he cannot keep others out.
func (s *stepper) called(conn net.Conn) {
	if len(s.streams)-len(s.strangers) >= maxStreams {
		s.n.counts.turnedAway.Add(1)
		s.n.taken(conn)
		conn.Close()
		return
	}
	if len(s.strangers) >= maxStrangers {
		s.n.counts.turnedAway.Add(1)
		s.failed(s.strangers[0])
	}
	s.next += 2
	c := s.newStream(conn)
	c.link = s.next
	s.streams[c.link] = c
	s.strangers = append(s.strangers, c)
	s.begin(c)
}

// known takes a stream out of those of strangers: it has said something valid,
// or ends.
func (s *stepper) known(c *stream) {
	if i := slices.Index(s.strangers, c); i >= 0 {
		s.strangers = slices.Delete(s.strangers, i, i+1)
	}
}

// dialled takes a connection that the core wanted, or that there is none.
func (s *stepper) dialled(it *item) {
	if it.tier {
		s.tier.dialled(it.up, it.conn)
		return
	}
	unwanted := s.dialing[it.link]
	delete(s.dialing, it.link)
	switch {
	case it.conn == nil && !unwanted:
		s.input(member.Input{Kind: member.ConnectFailed, Link: it.link})
	case it.conn != nil && unwanted:
		s.n.taken(it.conn)
		it.conn.Close()
	case it.conn != nil:
		c := s.newStream(it.conn)
		c.link, c.dialled = it.link, true
		s.streams[it.link] = c
		s.begin(c)
	}
}

// newStream makes a stream of a connection that the loop has got.
func (s *stepper) newStream(conn net.Conn) *stream {
	s.n.taken(conn)
	tune(conn)
	return &stream{n: s.n, conn: conn, ours: gossip.MakePreamble(randomBytes())}
}

// begin starts to read a stream.
func (s *stepper) begin(c *stream) {
	_ = c.conn.SetReadDeadline(time.Now().Add(greetTimeout)) // until valid
	c.send(c.ours[:])
	s.n.tasks.Go(c.serve)
}

// valid notes that a valid frame has come.
func (c *stream) valid() {
	if !c.heard {
		c.heard = true
		_ = c.conn.SetReadDeadline(time.Time{})
	}
}

// all returns the streams, for who knows that the loop has ended.
func (s *stepper) all() (all []*stream) {
	for _, c := range s.streams {
		all = append(all, c)
	}
	if s.tier != nil {
		for _, c := range s.tier.links {
			all = append(all, c)
		}
	}
	return all
}

// has reports whether a stream was not closed by this end.
func (s *stepper) has(c *stream) bool {
	if c.tier {
		return s.tier.links[c.up] == c
	}
	return s.streams[c.link] == c
}

// preambled takes what the other end of a stream begins with. The core is notified
// of a stream that the node has dialled; of another one when it says something
// valid.
func (s *stepper) preambled(c *stream, b []byte) {
	if !s.has(c) {
		return
	}
	c.theirs = gossip.Preamble(b)
	if err := c.theirs.Check(); err != nil {
		s.malformed(err, c.conn.RemoteAddr())
		s.failed(c)
		return
	}
	ring := s.wire.ring
	if c.tier {
		ring = s.tier.ring
	}
	c.seals = ring.Stream(c.ours, c.theirs)
	if !c.dialled {
		return
	}
	c.greeted = true
	if c.tier {
		s.tier.input(hierarchy.Input{Kind: hierarchy.Connected, Link: c.up})
	} else {
		s.input(member.Input{Kind: member.Connected, Link: c.link})
	}
}

// frame takes a frame that came on a stream.
func (s *stepper) frame(c *stream, b []byte) {
	if !s.has(c) {
		return
	}
	var err error
	switch {
	case !c.tier && !c.greeted && s.tier != nil && s.tier.owns(c, b):
		if !s.tier.adopt(c) {
			return
		}
		err = s.tier.frame(c, b)
	case c.tier:
		err = s.tier.frame(c, b)
	default:
		err = s.zoneFrame(c, b)
	}
	if err != nil {
		s.malformed(err, c.conn.RemoteAddr())
		s.failed(c)
	}
}

// zoneFrame takes a frame of the zone's.
func (s *stepper) zoneFrame(c *stream, b []byte) error {
	in, err := s.wire.take(c.seals, b)
	if err != nil {
		return err
	}
	c.valid()
	if !c.greeted {
		c.greeted = true
		s.known(c)
		s.input(member.Input{Kind: member.Accepted, Link: c.link})
	}
	in.Link = c.link
	s.input(in)
	return nil
}

// malformed counts and reports what is not of this zone, or of nobody who may
// speak.
func (s *stepper) malformed(err error, from any) {
	s.n.counts.malformed.Add(1)
	s.n.log.Debug("a packet was dropped", slog.Any("from", from), slog.Any("error", err))
}

// failed ends a stream, and informs the core if that knows of it.
func (s *stepper) failed(c *stream) {
	c.cut()
	if c.tier {
		delete(s.tier.links, c.up)
		s.tier.input(hierarchy.Input{Kind: hierarchy.Failed, Link: c.up})
		return
	}
	delete(s.streams, c.link)
	s.known(c)
	switch {
	case c.greeted:
		s.input(member.Input{Kind: member.Failed, Link: c.link})
	case c.dialled:
		s.input(member.Input{Kind: member.ConnectFailed, Link: c.link})
	}
}

// ended takes the end of a stream from the other side.
func (s *stepper) ended(c *stream, err error) {
	if s.has(c) {
		s.n.log.Debug("a connection broke", slog.Any("with", c.conn.RemoteAddr()), slog.Any("error", err))
		s.failed(c)
	}
}

// datagram takes a datagram.
func (s *stepper) datagram(from netip.AddrPort, b []byte) {
	in, err := s.wire.takeDatagram(b)
	if err != nil {
		s.malformed(err, from)
		return
	}
	s.input(in)
}
