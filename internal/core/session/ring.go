package session

import "github.com/tributary-fabric/tributary/internal/wire"

// firstRing is the places of a group's ring at first, a power of two.
const firstRing = 16

// place returns the place in the ring for number n, which is the next to be
// created. A ring that is smaller than it may be grows rather than lose a chunk.
func (s *Session) place(n uint32) *chunk {
	for s.at(n).state != vacant && uint32(len(s.ring)) < 2*s.cfg.Window {
		ring := make([]chunk, 2*len(s.ring))
		for i := range s.ring {
			if c := &s.ring[i]; c.state != vacant {
				ring[c.number&uint32(len(ring)-1)] = *c
			}
		}
		s.ring = ring
	}
	return s.at(n)
}

// Forget gives back what is kept of the numbers before n, of which every member
// has the results: no change of epoch goes back beyond them. Idle probes say it to
// the switches from then on.
func (s *Session) Forget(n uint32) {
	if wire.Newer(n, s.base) {
		n = s.base // what is missing here is not forgotten, whoever says so
	}
	s.settled, s.isSettled = n, true
	left := false
	for i := range s.ring {
		c := &s.ring[i]
		switch {
		case c.state == vacant:
		case c.state == done && !c.credit && wire.Newer(n, c.number):
			s.disown(c)
			*c = chunk{}
		default:
			left = true
		}
	}
	s.spares = nil
	if !left {
		s.ring, s.past, s.turned = make([]chunk, min(firstRing, 2*s.cfg.Window)), nil, nil
	}
}
