package membership

import (
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
		s.dialing[d.Link] = false
		to := s.directory.ID(d.Peer)
		s.n.tasks.Go(func() { s.n.dial(item{link: d.Link}, to) })
	}
	for _, m := range out.Sends {
		if c := s.streams[m.Link]; c != nil && c.greeted {
			frames, count := s.wire.frames(c.seals, m.Message)
			s.n.counts.framesOut.Add(uint64(count))
			c.send(frames)
		}
	}
	for _, a := range out.Attached {
		if c := s.streams[a.Link]; c != nil && c.greeted {
			s.scratch = a.Payload.(attributes.Message).Append(s.scratch[:0])
			s.n.counts.framesOut.Add(1)
			c.send(s.wire.body(c.seals, gossip.Attributes, s.scratch))
		}
	}
	for _, p := range out.Packets {
		to := s.address(p.To)
		s.wire.datagrams(p.Message, func(b []byte) { s.send(to, b) })
	}
	for _, p := range out.Pulses {
		s.send(s.address(p.To), s.wire.pulse(p))
	}
	for _, link := range out.Closes {
		s.close(link)
	}
	if s.tier != nil {
		s.tier.apply(now)
	}
	if out.Stopped && !s.left {
		s.left = true
		s.n.end(s.why, true)
	}
	s.directory.Sweep()
	out.Reset()
	return nil
}

// close closes a link after what was sent on it.
func (s *stepper) close(link member.Link) {
	if _, ok := s.dialing[link]; ok {
		s.dialing[link] = true
	}
	if c := s.streams[link]; c != nil {
		delete(s.streams, link)
		c.shut()
	}
}

// send sends a datagram.
func (s *stepper) send(to netip.AddrPort, b []byte) {
	s.n.counts.datagramsOut.Add(1)
	s.n.counts.datagramBytesOut.Add(uint64(len(b)))
	if _, err := s.n.socket.WriteToUDPAddrPort(b, to); err != nil {
		s.n.counts.refused.Add(1) // the network may lose it as well
	}
}
