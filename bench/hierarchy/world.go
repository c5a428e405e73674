package hierarchy

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/attribute"
	roles "github.com/tributary-fabric/tributary/internal/core/hierarchy"
	"github.com/tributary-fabric/tributary/internal/core/member"
	zonecore "github.com/tributary-fabric/tributary/internal/core/zone"
	"github.com/tributary-fabric/tributary/internal/sim/zone"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
	wire "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// ErrConfig is wrapped by the errors of Config.Validate, ErrIncomplete by those
// of runs that did not get where they were to get.
var (
	ErrConfig     = errors.New("hierarchy: invalid configuration")
	ErrIncomplete = errors.New("hierarchy: the census is not complete")
)

// Config is what a hierarchy is made of.
type Config struct {
	Seed        uint64
	Zones       int  // base zones, 1 or more
	Size        int  // nodes of each
	Supervisors int  // nodes of the management zone
	Stubs       bool // all base zones are stubs; else zone 0 is real
	Contacts    int  // nodes of the management zone that base zones are notified of

	Zone  zone.Config // of both kinds of zones; its Nodes, Seed and hooks are not used
	Roles roles.Settings
	Base  []Measured // the times of stub zones, drawn from these; none: at once
}

// Million returns the paper's: 512 zones of 2,048 nodes, all but one stubs.
func Million(seed uint64) Config {
	return Config{
		Seed: seed, Zones: 512, Size: 2048, Supervisors: 512, Contacts: 8,
		Zone: zone.DefaultConfig(2048, seed), Roles: roles.DefaultSettings(),
	}
}

// Management returns the paper's other one: 1,024 supervisors, and as many stub
// zones of a single node.
func Management(seed uint64) Config {
	c := Million(seed)
	c.Zones, c.Size, c.Supervisors, c.Stubs = 1024, 1, 1024, true
	return c
}

// Validate reports what is wrong with c; the error wraps ErrConfig.
func (c Config) Validate() error {
	if c.Zones < 1 || c.Size < 1 || c.Supervisors < 1 || c.Contacts < 1 {
		return fmt.Errorf("%w: %d zones of %d, %d supervisors, %d contacts, want 1 at least of each", ErrConfig, c.Zones, c.Size, c.Supervisors, c.Contacts)
	}
	if c.Zone.Delay <= 0 {
		return fmt.Errorf("%w: the worlds advance together by less than the delay, which is %v", ErrConfig, c.Zone.Delay)
	}
	return c.Roles.Validate()
}

// World is a hierarchy.
type World struct {
	cfg  Config
	net  network
	rand *rand.Rand

	mesh        *zone.World // the management zone
	supervisors []*roles.Supervisor
	posts       []*place // of supervisors

	base      *zone.World // zone 0; nil if it is a stub
	delegates []*roles.Delegate
	desks     []*place

	stubs  []*stubZone
	events events
	views  func(s *roles.Supervisor, views []roles.View) // nil: nobody fetches
	slow   int                                           // a supervisor that had not what was waited for
	err    error
}

// New returns a hierarchy all of whose nodes start now.
func New(cfg Config) (*World, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	w := &World{cfg: cfg, rand: rand.New(rand.NewPCG(cfg.Seed, 11)), supervisors: make([]*roles.Supervisor, cfg.Supervisors), posts: make([]*place, cfg.Supervisors)}
	w.net = network{cfg: &w.cfg.Zone, rand: w.rand, places: map[gossip.ID]*place{}}
	var err error
	if w.mesh, err = w.zone(cfg.Supervisors, 1, w.supervisor); err != nil {
		return nil, err
	}
	for i := range cfg.Supervisors {
		w.mesh.Start(i)
	}
	first := 0
	if !cfg.Stubs {
		first = 1
		w.delegates, w.desks = make([]*roles.Delegate, cfg.Size), make([]*place, cfg.Size)
		if w.base, err = w.zone(cfg.Size, 2, w.delegate); err != nil {
			return nil, err
		}
		for i := range cfg.Size {
			w.base.Start(i)
		}
	}
	for z := first; z < cfg.Zones; z++ {
		w.stubs = append(w.stubs, newStubZone(wire.Zone(z), cfg.Size))
		w.script(w.stubs[len(w.stubs)-1])
	}
	return w, w.err
}

// zone returns a world of real nodes.
func (w *World) zone(nodes int, seed uint64, wrap func(int, *member.Core, core.Time) zone.Stepper) (*zone.World, error) {
	cfg := w.cfg.Zone
	cfg.Nodes, cfg.Seed, cfg.Wrap, cfg.Observe = nodes, w.cfg.Seed<<8|seed, wrap, nil
	cfg.Bootstrap = min(cfg.Bootstrap, nodes)
	return zone.New(cfg)
}

// around puts a zone's core around a members' core.
func (w *World) around(c *member.Core) *station {
	settings := attribute.DefaultConfig(1)
	settings.Period = w.cfg.Zone.Settings.Tau
	k, err := zonecore.Around(c, settings)
	w.note(err)
	return &station{Core: k, net: &w.net}
}

func (w *World) note(err error) { w.err = errors.Join(w.err, err) }

// supervisor makes a node of the management zone.
func (w *World) supervisor(i int, c *member.Core, now core.Time) zone.Stepper {
	s := w.around(c)
	r, err := roles.NewSupervisor(w.cfg.Roles, s, now)
	w.note(err)
	s.role, w.supervisors[i] = r, r
	s.place = newPlace(w.mesh.At, func(in roles.Input) { w.mesh.Notify(i, attached(in)) })
	s.heard = func(now core.Time, _ *member.Output, out *roles.Output) {
		w.events.supervisor(now, out)
		if w.views != nil && len(out.Views) > 0 {
			w.views(r, out.Views)
		}
	}
	w.posts[i] = s.place
	w.net.places[s.ID(c.Self().Node)] = s.place
	return s
}

// attached wraps what comes on a link of the hierarchy for internal/sim/zone,
// which need not know of it.
func attached(in roles.Input) member.Input { return member.Input{Kind: member.Attached, Payload: in} }

// delegate makes a node of the real base zone.
func (w *World) delegate(i int, c *member.Core, now core.Time) zone.Stepper {
	s := w.around(c)
	r, err := roles.NewDelegate(w.delegateConfig(0), s, now)
	w.note(err)
	s.role, w.delegates[i] = r, r
	s.place = newPlace(w.base.At, func(in roles.Input) { w.base.Notify(i, attached(in)) })
	s.heard = func(now core.Time, zone *member.Output, _ *roles.Output) {
		if r.Active() {
			w.events.delegate(now, i, zone)
		}
	}
	w.desks[i] = s.place
	return s
}

func (w *World) delegateConfig(number wire.Zone) roles.DelegateConfig {
	cfg := roles.DelegateConfig{Settings: w.cfg.Roles, Zone: number}
	for k := range min(w.cfg.Contacts, w.cfg.Supervisors) {
		cfg.Contacts = append(cfg.Contacts, w.contact((int(number)+k*w.cfg.Supervisors/w.cfg.Contacts)%w.cfg.Supervisors))
	}
	return cfg
}

// script starts a stub zone's delegates so that each is elected when one of a
// measured zone was.
func (w *World) script(z *stubZone) {
	var times []time.Duration
	if len(w.cfg.Base) > 0 {
		times = w.cfg.Base[w.rand.IntN(len(w.cfg.Base))].Elected
	}
	lead := &stub{stubZone: z}
	for k, node := range roles.Candidates(lead, z.number, w.cfg.Roles.Delegates) {
		at := w.cfg.Roles.Settle
		if k < len(times) {
			at = max(at, times[k])
		}
		start := core.Time(at - w.cfg.Roles.Settle)
		s := &stub{stubZone: z, node: node, net: &w.net, timer: core.Never}
		s.place = newPlace(w.mesh.At, func(in roles.Input) { s.step(w.mesh.Now(), in) })
		w.mesh.At(start, func() {
			var err error
			s.role, err = roles.NewDelegate(w.delegateConfig(z.number), s, start)
			w.note(err)
			s.arm(start)
		})
	}
}

// Now returns the virtual time.
func (w *World) Now() core.Time { return w.mesh.Now() }

// advance lets both worlds advance by less than what is sent from one to the
// other takes.
func (w *World) advance() {
	until := w.Now().Add(w.cfg.Zone.Delay)
	w.mesh.RunUntil(until)
	if w.base != nil {
		w.base.RunUntil(until)
	}
}

// RunFor lets d pass.
func (w *World) RunFor(d time.Duration) {
	for end := w.Now().Add(d); w.Now() < end; {
		w.advance()
	}
}

// await runs until done, which is asked every Delay, and returns how long that
// took.
func (w *World) await(what string, done func() bool) (time.Duration, error) {
	from := w.Now()
	for !done() {
		if w.Now().Sub(from) > patience {
			return patience, fmt.Errorf("%s: %w after %v", what, ErrIncomplete, patience)
		}
		w.advance()
	}
	return w.Now().Sub(from), w.err
}

// everywhere reports whether something is true of all supervisors that run; it
// asks the one first of which it was not.
func (w *World) everywhere(is func(s *roles.Supervisor) bool) bool {
	for k := range w.supervisors {
		i := (w.slow + k) % len(w.supervisors)
		if w.mesh.Up(i) && !is(w.supervisors[i]) {
			w.slow = i
			return false
		}
	}
	return true
}

// knows reports whether a supervisor has the right census of a zone, which may be
// handed over meanwhile.
func (w *World) knows(s *roles.Supervisor, number wire.Zone, digest uint64, size int) bool {
	summary, _ := s.Summary(number)
	return summary == roles.Summary{Delegates: min(w.cfg.Roles.Delegates, size), Size: size, Digest: digest}
}

// complete reports whether it has, and knows of as many supervisors of the zone as
// there are to be.
func (w *World) complete(s *roles.Supervisor, number wire.Zone, digest uint64, size int) bool {
	_, by := s.Summary(number)
	return w.knows(s, number, digest, size) && by == min(w.cfg.Roles.Supervisors, w.running())
}

func (w *World) running() int {
	n := 0
	for i := range w.supervisors {
		if w.mesh.Up(i) {
			n++
		}
	}
	return n
}

// digest returns what the census has to have of the real zone.
func (w *World) digest() (digest uint64, size int) {
	for i := range w.delegates {
		if w.base.Up(i) {
			digest ^= uint64(w.base.Life(i))
			size++
		}
	}
	return digest, size
}
