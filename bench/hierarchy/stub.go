package hierarchy

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/attribute"
	roles "github.com/tributary-fabric/tributary/internal/core/hierarchy"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/wire/attributes"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
	wire "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// stubZone is a base zone of which only the delegates run.
type stubZone struct {
	number wire.Zone
	ids    []gossip.ID
	lives  []attributes.Life
	view   []member.Index
}

func newStubZone(number wire.Zone, size int) *stubZone {
	z := &stubZone{number: number, ids: make([]gossip.ID, size), lives: make([]attributes.Life, size), view: make([]member.Index, size)}
	for i := range z.ids {
		address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(number), byte(i >> 8), byte(i)}), 7946)
		z.ids[i] = gossip.ID(fmt.Sprintf("z%d-%04d@%v", number, i, address))
		z.lives[i] = z.ids[i].Key().Life(1)
		z.view[i] = member.Index(i)
	}
	return z
}

// digest returns what the census has to have of the zone.
func (z *stubZone) digest() uint64 {
	digest := uint64(0)
	for _, life := range z.lives {
		digest ^= uint64(life)
	}
	return digest
}

// stub is a delegate of a stub zone, and the Zone of its role.
type stub struct {
	*stubZone
	node member.Index

	role  *roles.Delegate
	place *place
	net   *network
	out   roles.Output
	timer core.Time
}

func (s *stub) Self() attributes.Life               { return s.Life(s.node) }
func (s *stub) View() []member.Index                { return s.view }
func (s *stub) ID(i member.Index) gossip.ID         { return s.ids[i] }
func (s *stub) Version(member.Index) gossip.Version { return gossip.Version{Incarnation: 1, Minor: 1} }
func (s *stub) Life(i member.Index) attributes.Life { return s.lives[i] }
func (s *stub) Changed() []attribute.Notice         { return nil }
func (s *stub) Declare(string, []byte) error        { return nil }
func (s *stub) Retract(string) error                { return nil }
func (s *stub) SetMonitor(bool) error               { return nil }

func (s *stub) Find(life attributes.Life) (member.Index, bool) {
	i := slices.Index(s.lives, life)
	return member.Index(i), i >= 0
}

// Attribute answers that nobody has declared anything: the stubs are the nodes
// that are elected then.
func (s *stub) Attribute(attributes.Life, string) ([]byte, bool) { return nil, false }

// step steps the role and does what it wants.
func (s *stub) step(now core.Time, in ...roles.Input) {
	s.out.Reset()
	s.role.Step(now, nil, in, &s.out)
	s.net.perform(s.place, now, &s.out)
	s.arm(now)
}

// arm sees to it that the role is stepped at its deadline.
func (s *stub) arm(now core.Time) {
	due := max(s.role.Deadline(), now)
	if due >= s.timer {
		return
	}
	s.timer = due
	s.place.at(due, func() {
		if s.timer == due {
			s.timer = core.Never
			if s.place.up {
				s.step(due)
			}
		}
	})
}
