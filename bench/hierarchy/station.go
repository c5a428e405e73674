package hierarchy

import (
	"github.com/tributary-fabric/tributary/internal/core"
	roles "github.com/tributary-fabric/tributary/internal/core/hierarchy"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/core/zone"
)

// role is one of internal/core/hierarchy.
type role interface {
	Step(now core.Time, zone *member.Output, in []roles.Input, out *roles.Output)
	Deadline() core.Time
}

// station is a real node: its part in its zone, and its role. It is a Stepper of
// internal/sim/zone, which brings what comes on links as attachments.
type station struct {
	*zone.Core
	role  role
	place *place
	net   *network
	in    []roles.Input
	out   roles.Output
	heard func(now core.Time, zone *member.Output, out *roles.Output) // nil: nobody asks
}

// Step steps the zone's core, and then the role.
func (s *station) Step(now core.Time, batch []member.Input, out *member.Output) {
	s.in = s.in[:0]
	for i := range batch {
		if in, ok := batch[i].Payload.(roles.Input); ok {
			s.in = append(s.in, in)
		}
	}
	s.Core.Step(now, batch, out)
	s.out.Reset()
	if !out.Stopped {
		s.role.Step(now, out, s.in, &s.out)
	}
	s.net.perform(s.place, now, &s.out)
	if s.heard != nil {
		s.heard(now, out, &s.out)
	}
}

// Deadline returns when one of both wants to be stepped.
func (s *station) Deadline() core.Time { return s.Core.Deadline().Earlier(s.role.Deadline()) }
