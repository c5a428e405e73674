package membership

import (
	"crypto/rand"
	"encoding/binary"
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/core/zone"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// newStepper makes a node's core.
func newStepper(n *Node, now core.Time, seeds, supervisors []netip.AddrPort) (*stepper, error) {
	s := &stepper{
		n: n, directory: member.NewDirectory(), links: newLinks(n),
	}
	ring, err := ring(n.cfg)
	if err != nil {
		return nil, err
	}
	s.wire = wire{codec: member.NewCodec(s.directory), ring: ring}
	c := zone.DefaultConfig(n.id, n.incarnation)
	c.Member.Settings, c.Member.Seed, c.Monitor = n.cfg.Timing.settings(), randomSeed(), n.cfg.Monitor
	c.Attributes.Period = n.cfg.Timing.Tau
	if n.identity != nil {
		c.Member.Identity = n.identity
	}
	for _, at := range seeds {
		if at == n.addr {
			continue
		}
		c.Member.Bootstrap = append(c.Member.Bootstrap, gossip.ID("@"+at.String()))
	}
	if s.core, err = zone.New(c, s.directory, now); err != nil {
		return nil, err
	}
	s.tier, err = newTier(s, now, supervisors)
	return s, err
}

// randomSeed is what nobody can guess.
func randomSeed() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}
