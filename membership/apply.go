package membership

import (
	"fmt"
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/wire/attributes"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// apply does what a step has put out.
func (s *stepper) apply(now core.Time, out *member.Output) []item {
	s.notify(out.Notices, out.Stopped)
	s.learnt(s.core.Changed())
	for _, d := range out.Dials {
		l := &link{zone: d.Link}
		s.links.zone[d.Link] = l
		s.open(s.directory.ID(d.Peer), l)
	}
	for _, m := range out.Sends {
		if l := s.links.zone[m.Link]; l != nil {
			s.n.identity.expects(m.Message, s.members().Claims())
			s.links.send(l, s.wire.packets(m.Message))
		}
	}
	for _, a := range out.Attached {
		if l := s.links.zone[a.Link]; l != nil {
			s.scratch = a.Payload.(attributes.Message).Append(s.scratch[:0])
			s.links.send(l, s.wire.body(gossip.Attributes, s.scratch))
		}
	}
	for _, p := range out.Packets {
		to := s.address(p.To)
		s.wire.datagrams(p.Message, func(b []byte) { s.send(to, b) })
	}
	for _, p := range out.Pulses {
		s.send(s.address(p.To), s.wire.pulse(p))
	}
	for _, number := range out.Closes {
		if l := s.links.zone[number]; l != nil {
			s.links.close(l)
		}
	}
	if s.tier != nil {
		s.tier.apply(now)
	}
	if out.Stopped && !s.left {
		s.left = true
		for _, l := range s.links.all {
			s.links.close(l)
		}
		s.n.end(s.why, true)
		s.leaving()
	}
	s.directory.Sweep()
	out.Reset()
	return s.links.flush()
}

// open opens a link to a node. A node in the view is where its latest life is.
func (s *stepper) open(id gossip.ID, l *link) {
	at := id.Endpoints()
	if i, ok := s.find(id.Name()); ok {
		at = s.directory.ID(i).Endpoints()
	}
	s.openAt(id.Name(), at, l)
}

func (s *stepper) openAt(name string, at []netip.AddrPort, l *link) {
	if name == s.n.cfg.Name || len(at) == 0 {
		s.links.ends = append(s.links.ends, item{kind: linkFailed, link: l, err: fmt.Errorf("%w: %s has no address but this node's", ErrUnknown, name)})
		return
	}
	s.links.open(name, at[0], l)
}

// send sends a datagram.
func (s *stepper) send(to netip.AddrPort, b []byte) {
	s.n.counts.datagramsOut.Add(1)
	s.n.counts.datagramBytesOut.Add(uint64(len(b)))
	if _, err := s.n.socket.WriteToUDPAddrPort(b, to); err != nil {
		s.n.counts.refused.Add(1) // the network may lose it as well
	}
}
