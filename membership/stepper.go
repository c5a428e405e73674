package membership

import (
	"log/slog"
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/core"
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

	links links
	index map[string]member.Index // of the view, by name; nil: nobody has looked for one yet

	inputs  []member.Input
	scratch []byte
	raw     []*[]byte // of the inputs: returned after the step
	homes   []home    // by Index; what each ID says is read once
	left    bool
	drained bool // and all links are closed at both ends

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
	s.leaving()
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
	case connected:
		s.connected(it.conn)
	case disconnected:
		s.disconnected(it.conn, it.err)
	case absent:
		s.cut(it.conn.Peer().Name, errAbsent, func(*link) bool { return true })
	case unsent:
		for _, l := range s.links.all {
			if l.ours && !l.isOpen && l.opening() == it.number {
				s.lost(l, it.err)
			}
		}
	case linkFailed:
		s.lost(it.link, it.err)
	case frameCame:
		s.frame(it)
	case datagramCame:
		s.datagram(it.from, *it.raw)
	case named:
		s.tier.named(it)
	case departs:
		s.input(member.Input{Kind: member.Depart, Exit: gossip.Exit{Given: true, Code: it.exit}})
	case rechecks:
		s.recheck()
	}
}

func (s *stepper) input(in member.Input) { s.inputs = append(s.inputs, in) }

// malformed counts and reports what is not of this zone, or of nobody who may
// speak.
func (s *stepper) malformed(err error, from any) {
	s.n.counts.malformed.Add(1)
	s.n.log.Debug("a packet was dropped", slog.Any("from", from), slog.Any("error", err))
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
