package rails

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/nic"
)

// State is a rail and whether it carries.
type State struct {
	Rail
	Fault error     // nil: it may carry
	Since time.Time // when that was found
}

// Config is how a Set is made.
type Config struct {
	Rails  []Rail
	Source nic.Source
	// Finds adds rails that appear on interfaces, of the family of Listen.
	Finds  bool
	Listen netip.Addr

	// Changed is called when a rail of the Set goes down (a fault) or comes back (nil); one
	// call at a time.
	Changed func(r Rail, fault error)
	// Found is called with a rail that has appeared; if it returns true, the Set has it from
	// then on.
	Found func(r Rail) bool
	Log   *slog.Logger
}

// Set follows the rails of a host.
type Set struct {
	cfg Config

	looks sync.Mutex // held while the interfaces are read and changes reported, and while all is replaced
	mu    sync.Mutex
	all   []State
}

// New returns a Set, which Run has follow the interfaces.
func New(c Config) *Set {
	s := &Set{cfg: c}
	for _, r := range c.Rails {
		s.all = append(s.all, State{Rail: r, Since: time.Now()})
	}
	return s
}

// States returns all rails and whether they carry.
func (s *Set) States() []State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// Replace makes these the rails; what is known of one that stays stays.
func (s *Set) Replace(all []Rail) {
	s.looks.Lock() // a rail that was found is not added in between
	s.replace(all)
	s.looks.Unlock()
	s.look()
}

func (s *Set) replace(all []Rail) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := make([]State, len(all))
	for i, r := range all {
		now[i] = State{Rail: r, Since: time.Now()}
		if k := s.find(r.Name); k >= 0 && s.all[k].Rail == r {
			now[i] = s.all[k]
		}
	}
	s.all = now
}

func (s *Set) find(name string) int {
	return slices.IndexFunc(s.all, func(t State) bool { return t.Name == name })
}

// Run follows the interfaces until the context ends.
func (s *Set) Run(ctx context.Context) {
	err := s.cfg.Source.Watch(ctx, s.look)
	if ctx.Err() == nil && !errors.Is(err, nic.ErrUnsupported) {
		s.cfg.Log.Warn("changes of interfaces are not noticed any more: dead rails are found by silence alone", slog.Any("error", err))
	}
}

// look reads the interfaces and reports what has changed.
func (s *Set) look() {
	s.looks.Lock()
	defer s.looks.Unlock()
	all, err := s.cfg.Source.Read()
	if err != nil {
		if !errors.Is(err, nic.ErrUnsupported) {
			s.cfg.Log.Warn("cannot read interfaces", slog.Any("error", err))
		}
		return
	}
	for _, t := range s.changes(all) {
		s.cfg.Changed(t.Rail, t.Fault)
	}
	if !s.cfg.Finds {
		return
	}
	for _, r := range Find(all, s.cfg.Listen) {
		if s.isNew(r) && s.cfg.Found(r) {
			s.mu.Lock()
			s.all = append(s.all, State{Rail: r, Since: time.Now()})
			s.mu.Unlock()
		}
	}
}

// changes notes what rails have come to, and returns those that have changed.
func (s *Set) changes(all []nic.Interface) (changed []State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.all {
		t := &s.all[i]
		fault := t.Rail.Fault(all)
		if (fault == nil) != (t.Fault == nil) {
			t.Since = time.Now()
			changed = append(changed, State{Rail: t.Rail, Fault: fault, Since: t.Since})
		}
		t.Fault = fault
	}
	return changed
}

// isNew reports whether the Set has no rail of the interface.
func (s *Set) isNew(r Rail) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(s.all, func(t State) bool { return t.Interface == r.Interface || t.Name == r.Name })
}
