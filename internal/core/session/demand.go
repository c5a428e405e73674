package session

import (
	"math/bits"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

const (
	// demandLook is how long what an operation uses is looked at before the demand
	// falls.
	demandLook = 2 * time.Second
	// demandRounds is the windows of results that came while W was in the way, in
	// one look, after which the demand rises.
	demandRounds = 4
	// demandFall is the share of the demand, one of so many, that must have done
	// for a whole look before it falls.
	demandFall = 4
)

// demand is what window the group's operations can use, as its lowest rank sees
// it: all that the group may have once W was in the way for some rounds, and what
// was used at the most in a look after that.
type demand struct {
	off   bool      // another member says it
	said  uint32    // last that was put out; at first 1, as everybody assumes
	most  uint32    // numbers that were in flight at once in this look
	bound uint32    // results in this look that came while W, and nothing else, was in the way
	until core.Time // of this look; core.Never: there is nothing that it could change
}

func newDemand(rank uint32) demand { return demand{off: rank != 0, said: 1, until: core.Never} }

// bounded reports whether W keeps the member from sending.
func (s *Session) bounded() bool {
	return s.next != s.fresh && !s.waits && (s.next-s.base >= s.link.Window || s.flight >= s.link.Window || s.held == byWindow)
}

// demanded looks at what was sent and has landed, results of them, and puts out a
// demand that has changed.
func (s *Session) demanded(now core.Time, results uint32, out *Output) {
	d := &s.demand
	if d.off {
		return
	}
	d.most = max(d.most, s.next-s.base)
	if s.link.Offload() && s.bounded() {
		if d.bound += results; d.bound >= demandRounds*s.link.Window && d.said < s.cfg.Window {
			d.say(s.cfg.Window, out)
		}
	}
	if now >= d.until {
		used := max(1, uint32(1)<<bits.Len32(max(d.most, 1)-1))
		if used > d.said || d.bound < s.link.Window && used < d.said && used <= max(1, d.said/demandFall) {
			d.say(used, out)
		}
		d.most, d.bound, d.until = s.next-s.base, 0, core.Never
	}
	if d.until == core.Never && (d.said > 1 || d.most > 1) {
		d.until = now.Add(demandLook)
	}
}

func (d *demand) say(window uint32, out *Output) { d.said, out.Demand = window, window }
