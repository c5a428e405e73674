package hierarchy

import (
	"fmt"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	roles "github.com/tributary-fabric/tributary/internal/core/hierarchy"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
	wire "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// Measured is what a real base zone took, from the start of all its nodes.
type Measured struct {
	Stable  time.Duration   // until all views were equal
	Elected []time.Duration // until each of its delegates was, rising
}

// patience is the longest that a row waits; calm is how long it leaves a
// hierarchy alone before something happens to it.
const (
	patience = time.Minute
	calm     = 5 * time.Second
)

// Measure boots a real base zone of cfg.Size nodes alone, without a management
// zone to reach.
func Measure(cfg Config) (Measured, error) {
	cfg.Zones, cfg.Supervisors, cfg.Stubs = 1, 1, false
	w, err := New(cfg)
	if err != nil {
		return Measured{}, err
	}
	w.net.places = nil // nobody answers
	var m Measured
	elected := map[int]bool{}
	_, err = w.await("measuring a zone", func() bool {
		if m.Stable == 0 && w.base.Agreed() {
			m.Stable = time.Duration(w.Now())
		}
		for i, d := range w.delegates {
			if d.Active() && !elected[i] {
				elected[i] = true
				m.Elected = append(m.Elected, time.Duration(w.Now()))
			}
		}
		return m.Stable > 0 && len(elected) >= min(cfg.Roles.Delegates, cfg.Size)
	})
	return m, err
}

// BootResult is the boot of a hierarchy, all of whose nodes start at once.
type BootResult struct {
	Nodes, Zones, Size, Supervisors int

	Base       time.Duration // the real base zone: all views equal
	Elected    time.Duration // and its delegates have declared themselves; 0 without a real one
	Management time.Duration // the management zone: all views equal
	Boot       time.Duration // every supervisor has the whole census, and it is right

	Load     [2]int // the fewest and the most zones that a supervisor has
	Messages uint64 // on the links of the hierarchy
	Bytes    uint64
}

// start makes a hierarchy and lets it boot.
func start(cfg Config) (*World, BootResult, error) {
	r := BootResult{Nodes: cfg.Zones * cfg.Size, Zones: cfg.Zones, Size: cfg.Size, Supervisors: cfg.Supervisors}
	w, err := New(cfg)
	if err != nil {
		return nil, r, err
	}
	digests := make([]uint64, cfg.Zones)
	for _, z := range w.stubs {
		digests[z.number] = z.digest()
	}
	if w.base != nil {
		digests[0], _ = w.digest()
	}
	next := make([]int, cfg.Supervisors) // zones that a supervisor has had right
	r.Boot, err = w.await("boot", func() bool {
		w.milestones(&r)
		for i, s := range w.supervisors {
			for next[i] < cfg.Zones && w.complete(s, wire.Zone(next[i]), digests[next[i]], cfg.Size) {
				next[i]++
			}
			if next[i] < cfg.Zones {
				return false
			}
		}
		if r.Management == 0 || w.base != nil && r.Base == 0 {
			return false
		}
		// What was right may have changed since.
		return w.everywhere(func(s *roles.Supervisor) bool {
			for z := range digests {
				if !w.complete(s, wire.Zone(z), digests[z], cfg.Size) {
					return false
				}
			}
			return true
		})
	})
	r.Load[0] = cfg.Zones
	for _, s := range w.supervisors {
		n := len(s.Held())
		r.Load[0], r.Load[1] = min(r.Load[0], n), max(r.Load[1], n)
	}
	r.Messages, r.Bytes = w.net.sent, w.net.bytes
	return w, r, err
}

// milestones notes what has come about on the way to a boot.
func (w *World) milestones(r *BootResult) {
	now := time.Duration(w.Now())
	if r.Management == 0 && w.mesh.Agreed() {
		r.Management = now
	}
	if w.base == nil {
		return
	}
	if r.Base == 0 && w.base.Agreed() {
		r.Base = now
	}
	if r.Elected == 0 && len(w.active()) == w.cfg.Roles.Delegates {
		r.Elected = now
	}
}

// active returns the real zone's delegates.
func (w *World) active() []int {
	var all []int
	for i, d := range w.delegates {
		if w.base.Up(i) && d.Active() {
			all = append(all, i)
		}
	}
	return all
}

// Boot boots a hierarchy, whose stub zones play cfg.Base.
func Boot(cfg Config) (BootResult, error) {
	_, r, err := start(cfg)
	return r, err
}

// How is a way in which a node goes.
type How int

// The ways.
const (
	Killed   How = iota // its process ends, its host closes its connections
	Silent              // its host says nothing any more
	Departed            // it leaves in order
)

var howNames = [...]string{"killed", "silent", "departed"}

// String returns the way's name.
func (h How) String() string { return howNames[h] }

// LeaveResult reports when a node of the real base zone that goes is known to be
// gone, since it went.
type LeaveResult struct {
	How         How
	Delegate    time.Duration // the first delegate, which is a high priority monitor
	Supervisors time.Duration // all supervisors of its zone, by a notice with its name
	Everywhere  time.Duration // every node of the management zone, by the census
}

// ReplaceResult reports how long it takes until all is as it should be again: every
// node of the management zone has a census with all delegates and supervisors.
type ReplaceResult struct {
	What string
	Took time.Duration
}

// MillionResult is what becomes of a hierarchy with a real base zone.
type MillionResult struct {
	BootResult
	Measured []Measured // what the stubs play
	Leaves   []LeaveResult
	Replaced []ReplaceResult
}

// RunMillion measures real base zones for the stubs, boots a hierarchy, has nodes
// of the real zone go, in each way in turn, and then a delegate and a supervisor
// of it. Progress is given what is done.
func RunMillion(cfg Config, leaves int, progress func(stage string)) (MillionResult, error) {
	var r MillionResult
	for k := range uint64(measures) {
		one := cfg
		one.Seed = cfg.Seed + 1 + k
		progress(fmt.Sprintf("measuring base zone %d of %d", k+1, measures))
		m, err := Measure(one)
		if err != nil {
			return r, err
		}
		r.Measured = append(r.Measured, m)
	}
	cfg.Base = r.Measured
	progress("booting")
	w, boot, err := start(cfg)
	if r.BootResult = boot; err != nil {
		return r, err
	}
	w.RunFor(calm)
	for k := range leaves {
		how := How(k % len(howNames))
		progress(fmt.Sprintf("leave %d of %d, %v", k+1, leaves, how))
		l, err := w.leave(how)
		if err != nil {
			return r, err
		}
		r.Leaves = append(r.Leaves, l)
		w.RunFor(calm)
	}
	for _, what := range []string{"a delegate", "a supervisor", "all supervisors of a zone"} {
		progress("replacing " + what)
		took, err := w.replace(what)
		if err != nil {
			return r, err
		}
		r.Replaced = append(r.Replaced, ReplaceResult{what, took})
		w.RunFor(calm)
	}
	return r, nil
}

// measures is how many real zones the times of stubs are drawn from.
const measures = 3

// leave has a node that is no delegate go.
func (w *World) leave(how How) (LeaveResult, error) {
	r := LeaveResult{How: how}
	victim := w.rand.IntN(w.cfg.Size)
	for !w.base.Up(victim) || w.delegates[victim].Active() {
		victim = w.rand.IntN(w.cfg.Size)
	}
	from := w.Now()
	w.events = events{node: w.base.Core(victim).Self().Node, id: w.base.Core(victim).Directory().ID(w.base.Core(victim).Self().Node)}
	switch how {
	case Killed:
		w.base.Kill(victim)
	case Silent:
		w.base.Silence(victim)
	case Departed:
		w.base.Leave(victim, gossip.Exit{Given: true})
	}
	var err error
	r.Everywhere, err = w.await("a leave", func() bool {
		digest, size := w.digest()
		return w.everywhere(func(s *roles.Supervisor) bool { return w.knows(s, 0, digest, size) })
	})
	r.Delegate = w.events.monitor.Sub(from)
	if n := len(w.events.reported); n > 0 {
		r.Supervisors = slices.Max(w.events.reported).Sub(from)
	}
	return r, err
}

// replace kills what is to be replaced in the real zone.
func (w *World) replace(what string) (time.Duration, error) {
	if what == "a delegate" {
		i := w.active()[0]
		w.base.Kill(i)
		w.net.end(w.desks[i], w.Now())
	} else {
		for i, s := range w.supervisors {
			if w.mesh.Up(i) && slices.Contains(s.Held(), 0) {
				w.mesh.Kill(i)
				w.net.end(w.posts[i], w.Now())
				if what == "a supervisor" {
					break
				}
			}
		}
	}
	return w.await("replacing "+what, func() bool {
		digest, size := w.digest()
		return w.everywhere(func(s *roles.Supervisor) bool {
			if !w.complete(s, 0, digest, size) {
				return false
			}
			for z := range w.cfg.Zones {
				if !w.supervised(s, wire.Zone(z)) {
					return false
				}
			}
			return true
		})
	})
}

// supervised reports whether a supervisor knows as many of a zone as there are
// to be, all of which run, and that the zone has its delegates.
func (w *World) supervised(s *roles.Supervisor, number wire.Zone) bool {
	ids := s.Supervisors(number)
	for _, id := range ids {
		if !w.net.places[id].up {
			return false
		}
	}
	summary, _ := s.Summary(number)
	return len(ids) == min(w.cfg.Roles.Supervisors, w.running()) && summary.Delegates == min(w.cfg.Roles.Delegates, w.cfg.Size)
}

// events are when somebody is notified of a node that goes.
type events struct {
	node     member.Index
	id       gossip.ID
	monitor  core.Time   // the first delegate
	reported []core.Time // the zone's supervisors
}

func (e *events) delegate(now core.Time, _ int, zone *member.Output) {
	for i := range zone.Notices {
		if n := &zone.Notices[i]; n.Kind == member.Leave && n.Node == e.node && e.id != "" && e.monitor == 0 {
			e.monitor = now
		}
	}
}

func (e *events) supervisor(now core.Time, out *roles.Output) {
	for i := range out.Notices {
		if n := &out.Notices[i]; n.Kind == member.Leave && n.ID == e.id && n.Zone == 0 {
			e.reported = append(e.reported, now)
		}
	}
}

// contact returns the ID of a node of the management zone.
func (w *World) contact(i int) gossip.ID {
	c := w.mesh.Core(i)
	return c.Directory().ID(c.Self().Node)
}
