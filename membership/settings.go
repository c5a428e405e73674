package membership

import (
	"cmp"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/hierarchy"
	"github.com/tributary-fabric/tributary/internal/core/member"
)

// Timing are the settings of the protocol. All nodes of a zone should have the
// same. Zero fields are those of DefaultTiming.
type Timing struct {
	// Tau is how long a node collects news before it sends them.
	Tau time.Duration
	// Heartbeat is the period of heartbeats to each of a node's Random + Successors
	// watchers, which receive them in turn.
	Heartbeat time.Duration
	// Grace is how long a watcher that misses a heartbeat probes, itself and through
	// others, before it reports a suspicion. Detection of a silent node takes Grace and a
	// part of Heartbeat; a longer Grace makes false alarms rarer.
	Grace time.Duration
	// Confirm is how long a node whose connection broke is probed before a suspicion,
	// 0 < Confirm <= Grace. Detection of a killed process takes this.
	Confirm time.Duration
	// Dial is the time limit for a connection to a neighbour.
	Dial time.Duration

	Theta      int // reporters required to remove a node
	Random     int // random neighbours of a node (the paper's Kr)
	Successors int // successors of a node on the ring (Ks), at least Theta

	// Health limits how much longer a slow node waits for others: up to 1 + Health times
	// as long. -1: no longer.
	Health int
	// Stealth is how long a restarted node only listens, in units of log2 of the zone's
	// size times Tau, or until its former life is removed: so its death is known before
	// its return. 0: 1 for a node that finds an earlier start in Config.State, none for
	// others. -1: none.
	Stealth int
}

// DefaultTiming returns the settings that docs/membership.md gives figures for.
func DefaultTiming() Timing {
	d := member.DefaultSettings()
	return Timing{
		Tau: d.Tau, Heartbeat: d.Heartbeat, Grace: d.Grace, Confirm: d.Confirm, Dial: d.Connect,
		Theta: d.Theta, Random: d.Kr, Successors: d.Ks,
		Health: d.Health, Stealth: d.Stealth,
	}
}

func (t Timing) withDefaults() Timing {
	d := DefaultTiming()
	t.Tau, t.Heartbeat = cmp.Or(t.Tau, d.Tau), cmp.Or(t.Heartbeat, d.Heartbeat)
	t.Grace, t.Dial = cmp.Or(t.Grace, d.Grace), cmp.Or(t.Dial, d.Dial)
	t.Confirm, t.Health = cmp.Or(t.Confirm, d.Confirm), cmp.Or(t.Health, d.Health)
	t.Theta, t.Random = cmp.Or(t.Theta, d.Theta), cmp.Or(t.Random, d.Random)
	t.Successors = cmp.Or(t.Successors, max(d.Successors, t.Theta))
	return t
}

// settings are those of the core.
func (t Timing) settings() member.Settings {
	s := member.DefaultSettings()
	s.Tau, s.Heartbeat, s.Grace, s.Connect = t.Tau, t.Heartbeat, t.Grace, t.Dial
	s.Theta, s.Kr, s.Ks = t.Theta, t.Random, t.Successors
	s.Confirm, s.Health, s.Stealth = t.Confirm, max(t.Health, 0), max(t.Stealth, 0)
	return s
}

// Hierarchy are the settings of what is above base zones. All nodes of all zones
// should have the same. Zero fields are those of DefaultHierarchy.
type Hierarchy struct {
	Delegates   int // elected of each base zone, at most 32
	Supervisors int // of each base zone; fewer where the management zone is smaller

	// Settle is how long a view must be unchanged before its node first takes part in an
	// election, or assigns supervisors.
	Settle time.Duration
	// Patience is how long an election waits for a candidate before the next ones
	// declare themselves.
	Patience time.Duration
	// Retry is the pause between two attempts to connect.
	Retry time.Duration
	// Beat is the period of keep-alives on an idle link.
	Beat time.Duration
	// Silence is the number of silent beats after which a link is closed, 2 or more.
	Silence int
	// Linger is how long a zone without delegates stays in the census.
	Linger time.Duration
}

// DefaultHierarchy returns the settings that docs/membership.md gives figures for.
func DefaultHierarchy() Hierarchy {
	d := hierarchy.DefaultSettings()
	return Hierarchy{
		Delegates: d.Delegates, Supervisors: d.Supervisors, Settle: d.Settle, Patience: d.Patience,
		Retry: d.Retry, Beat: d.Beat, Silence: d.Silence, Linger: d.Linger,
	}
}

func (h Hierarchy) withDefaults() Hierarchy {
	d := DefaultHierarchy()
	h.Delegates, h.Supervisors = cmp.Or(h.Delegates, d.Delegates), cmp.Or(h.Supervisors, d.Supervisors)
	h.Settle, h.Patience = cmp.Or(h.Settle, d.Settle), cmp.Or(h.Patience, d.Patience)
	h.Retry, h.Beat = cmp.Or(h.Retry, d.Retry), cmp.Or(h.Beat, d.Beat)
	h.Silence, h.Linger = cmp.Or(h.Silence, d.Silence), cmp.Or(h.Linger, d.Linger)
	return h
}

// settings are those of the role.
func (h Hierarchy) settings() hierarchy.Settings {
	s := hierarchy.DefaultSettings()
	s.Delegates, s.Supervisors, s.Settle, s.Patience = h.Delegates, h.Supervisors, h.Settle, h.Patience
	s.Retry, s.Beat, s.Silence, s.Linger = h.Retry, h.Beat, h.Silence, h.Linger
	return s
}
