package session

import (
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire"
)

// MaxWindow is the largest window that a group may be given, in chunks.
const MaxWindow = 4096

// ErrConfig is wrapped by all errors of Config.Validate and Link.Validate.
var ErrConfig = errors.New("session: invalid configuration")

// Config is what a session keeps for the group's life.
type Config struct {
	Rank       uint32 // this member's rank
	Members    int    // of the group, up to wire.MaxRank+1; 0: not known, and then no operation on reduce.Block32
	ChunkBytes int    // largest payload of a packet, 16 or more
	Window     uint32 // the largest window that any epoch may have, in chunks; a power of two
	Timing     Timing // zero value: DefaultTiming
}

// Timing are the bounds of the repair timer.
type Timing struct {
	Initial time.Duration // time to the first probe before a round trip was measured
	Min     time.Duration // least time to a probe, and between two
	Max     time.Duration // largest time to wait for the answer to a probe
	Gap     time.Duration // least time to a probe once later results have come
	Quiet   time.Duration // cap of the period while the parent answers Heard
	Silence time.Duration // least time without a sign of the tree after which it counts as lost
	Queue   time.Duration // delay of results at which a large window stops to grow; 0: only losses stop it
}

// DefaultTiming suits a data centre's fabric and hosts that are sometimes
// descheduled for tens of milliseconds.
func DefaultTiming() Timing {
	return Timing{
		Initial: 20 * time.Millisecond,
		Min:     5 * time.Millisecond,
		Max:     640 * time.Millisecond,
		Gap:     250 * time.Microsecond,
		Quiet:   time.Second,
		Silence: 750 * time.Millisecond,
		Queue:   4 * time.Millisecond,
	}
}

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	switch {
	case c.Rank > wire.MaxRank:
		return fmt.Errorf("%w: rank %d, largest is %d", ErrConfig, c.Rank, wire.MaxRank)
	case c.Members < 0 || c.Members > wire.MaxRank+1:
		return fmt.Errorf("%w: a group of %d members, most are %d", ErrConfig, c.Members, wire.MaxRank+1)
	case c.ChunkBytes < 16 || c.ChunkBytes > 1<<15:
		return fmt.Errorf("%w: chunk of %d bytes, want 16 to %d", ErrConfig, c.ChunkBytes, 1<<15)
	case !windowOK(c.Window):
		return fmt.Errorf("%w: window %d, want a power of two from 1 to %d", ErrConfig, c.Window, MaxWindow)
	}
	return c.Timing.validate()
}

// over returns the times for a link. A tree of hosts runs over streams, which lose
// nothing while they last: there Reconnected asks for what is in flight, and a
// probe sooner than Max would only add to the load that makes members late.
func (t Timing) over(l Link) Timing {
	if !l.Offload() {
		t.Initial, t.Min, t.Gap, t.Quiet = t.Max, t.Max, t.Max, max(t.Quiet, t.Max)
	}
	return t
}

func (t Timing) validate() error {
	if t != (Timing{}) && (t.Initial <= 0 || t.Min <= 0 || t.Gap < 0 || t.Queue < 0 || t.Silence < 0 || t.Max < t.Min || t.Quiet < t.Min) {
		return fmt.Errorf("%w: timing %+v, want positive times and none below Min", ErrConfig, t)
	}
	return nil
}

func windowOK(w uint32) bool { return bits.OnesCount32(w) == 1 && w <= MaxWindow }

// Link is a member's way into the tree of one epoch.
type Link struct {
	Group  uint32
	Epoch  uint32 // even: a tree of switches; odd: a tree of hosts
	Cookie wire.Cookie
	Window uint32 // W in chunks, a power of two, at most Config.Window

	Parent netip.AddrPort // where contributions go, and the only source of answers
	// Protection and Key are of the packets to and from the parent; the session sees plain ones.
	Protection wire.Protection
	Key        wire.Secret

	Source netip.Addr // from which the parent expects this member's packets; zero: any
	Index  uint16     // this member's child index at the parent

	Probes int           // least number of unanswered probes after which the tree counts as lost; 0: never
	Idle   time.Duration // period of idle probes, which renew the leases; 0: none
}

// Offload reports whether the link leads into a tree of switches.
func (l *Link) Offload() bool { return l.Epoch%2 == 0 }

// Validate reports what is wrong with l in a group of configuration c.
func (l Link) Validate(c Config) error {
	switch {
	case !windowOK(l.Window) || l.Window > c.Window:
		return fmt.Errorf("%w: epoch %d has a window of %d, want a power of two up to the group's %d", ErrConfig, l.Epoch, l.Window, c.Window)
	case !l.Parent.IsValid():
		return fmt.Errorf("%w: epoch %d has no parent address", ErrConfig, l.Epoch)
	case l.Cookie&^wire.CookieMask != 0:
		return fmt.Errorf("%w: epoch %d has a cookie of more than 48 bits", ErrConfig, l.Epoch)
	case l.Probes < 0 || l.Idle < 0:
		return fmt.Errorf("%w: epoch %d has negative probes or idle period", ErrConfig, l.Epoch)
	}
	return nil
}
