package sim

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/sim/agenda"
)

// ErrNoProgress is wrapped by the Failure of a run that did not get where it
// was to get.
var ErrNoProgress = errors.New("sim: no progress")

// World is a seeded discrete-event world. Its methods are not safe for
// concurrent use.
type World struct {
	cfg    Config
	rand   *rand.Rand
	now    core.Time
	queue  agenda.Agenda[event]
	lend   lender
	events uint64 // happened so far
	steps  uint64
	still  int // events since time last moved

	stepping bool
	nodes    []node
	names    []string
	paths    []path
	index    map[[2]NodeID]int32 // of paths, by their ends
	conns    []*conn
	stalled  []stalled
	waiting  []event // attempts to connect that met a cut
	total    [transports]Traffic

	hooks      []hook // rising
	intercepts []func(k Kind, from, to Addr, bytes []byte, fate *Fate)

	hash  hash
	ring  []kept
	lines uint64
}

// hook is a call before an event.
type hook struct {
	event uint64
	call
}

// New returns a world without nodes, at time 0.
func New(cfg Config) (*World, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Budget == 0 {
		cfg.Budget = DefaultBudget
	}
	if cfg.Keep == 0 {
		cfg.Keep = DefaultKeep
	}
	return &World{
		cfg:   cfg,
		rand:  rand.New(rand.NewPCG(cfg.Seed, prime0)),
		ring:  make([]kept, 0, cfg.Keep),
		index: map[[2]NodeID]int32{},
	}, nil
}

// Now returns the virtual time.
func (w *World) Now() core.Time { return w.now }

// Events returns how many events have happened.
func (w *World) Events() uint64 { return w.events }

// Steps returns how often nodes were stepped.
func (w *World) Steps() uint64 { return w.steps }

// Rand returns the world's generator, the only source of chance for all that
// happens in it.
func (w *World) Rand() *rand.Rand { return w.rand }

// At calls do at a time; one that has passed counts as now. The call is an
// event, and its name stands in the trace.
func (w *World) At(at core.Time, name string, do func()) {
	w.queue.Push(max(at, w.now), event{kind: callDue, call: &call{name, do}})
}

// After calls do after d. See At.
func (w *World) After(d time.Duration, name string, do func()) { w.At(w.now.Add(d), name, do) }

// Undisturbed is the index of an event that never comes.
const Undisturbed = math.MaxUint64

// AtEvent calls do just before the event of this index, the first one being 0.
// Where fewer events happen it is never called. It is no event itself.
func (w *World) AtEvent(index uint64, name string, do func()) {
	i, _ := slices.BinarySearchFunc(w.hooks, index, func(h hook, index uint64) int {
		return cmp.Or(cmp.Compare(h.event, index), -1) // after those of the same index
	})
	w.hooks = slices.Insert(w.hooks, i, hook{index, call{name, do}})
}

// Command has a node take a Command with this value now, as its next event.
func (w *World) Command(id NodeID, value any) {
	w.At(w.now, "command to "+w.Name(id), func() {
		if w.nodes[id].node != nil {
			w.arrive(id, Delivery{Kind: Command, Value: value}, -1)
		}
	})
}

// Run runs until nothing is due any more.
func (w *World) Run() error {
	return w.run(core.Never, nil)
}

// RunUntil runs until the time at, which is then the world's.
func (w *World) RunUntil(at core.Time) error {
	if err := w.run(at, nil); err != nil {
		return err
	}
	w.now = max(w.now, at)
	return nil
}

// RunFor runs for d. See RunUntil.
func (w *World) RunFor(d time.Duration) error { return w.RunUntil(w.now.Add(d)) }

// Await runs until done, which is asked before the first event and after every
// one, and fails with ErrNoProgress if it is not true within limit.
func (w *World) Await(limit time.Duration, done func() bool) error {
	if done() {
		return nil
	}
	reached := false
	err := w.run(w.now.Add(limit), func() bool {
		reached = done()
		return reached
	})
	switch {
	case err != nil || reached:
		return err
	case done(): // by what happened between two events, after the last one
		return nil
	case w.next() == core.Never:
		return w.Fail(fmt.Errorf("%w: nothing is due any more", ErrNoProgress))
	}
	return w.Fail(fmt.Errorf("%w: not done within %v", ErrNoProgress, limit))
}

// stillness is how many events may happen at one moment.
const stillness = 1 << 20

// run lets events happen up to a time, until done.
func (w *World) run(until core.Time, done func() bool) error {
	for last := w.events + w.cfg.Budget; ; {
		at := w.next()
		if at == core.Never || at > until {
			return nil
		}
		if w.disturb() {
			continue
		}
		if w.still++; at > w.now {
			w.still = 0
		}
		e := w.queue.Pop()
		switch {
		case w.still > stillness:
			return w.Fail(fmt.Errorf("%w: time stands still at %v", ErrNoProgress, w.describe(&e)))
		case w.events == last:
			return w.Fail(fmt.Errorf("%w: %d events, the last one at %v", ErrNoProgress, w.cfg.Budget, w.describe(&e)))
		}
		w.now = at
		w.happen(&e)
		w.events++
		if done != nil && done() {
			return nil
		}
	}
}

// next returns when the next event is due, Never if none is, and throws away
// what means nothing any more.
func (w *World) next() core.Time {
	for w.queue.Len() > 0 {
		at := w.queue.Next()
		if w.ready(at, w.queue.Top()) {
			return at
		}
		w.renew(at, w.queue.Pop())
	}
	return core.Never
}

// ready reports whether an event still means something.
func (w *World) ready(at core.Time, e *event) bool {
	switch e.kind {
	case timerDue:
		n := &w.nodes[e.node]
		return n.timer() == at && n.deadline <= at && n.paused <= at
	case wakeDue:
		n := &w.nodes[e.node]
		return n.wakeAt == at && n.paused <= at
	case itemDue:
		return w.itemReady(e)
	case connectDue:
		return w.connectReady(e)
	case patienceDue:
		c := w.paths[e.path].conn
		return c.token == e.token && c.state != idle
	}
	return true
}

// renew sets what came too early anew.
func (w *World) renew(at core.Time, e event) {
	switch n := &w.nodes[e.node]; {
	case e.kind == timerDue && n.timer() == at:
		n.timers = n.timers[:len(n.timers)-1]
		w.arm(e.node)
	case e.kind == wakeDue && n.wakeAt == at:
		n.wakeAt = core.Never
		w.wake(e.node, n.paused)
	}
}

// disturb runs the next hook if it is due.
func (w *World) disturb() bool {
	if len(w.hooks) == 0 || w.hooks[0].event > w.events {
		return false
	}
	h := w.hooks[0]
	w.hooks = w.hooks[1:]
	w.trace(entry{what: called, node: nobody, peer: nobody, text: h.name})
	h.do()
	return true
}

// happen lets one event happen.
func (w *World) happen(e *event) {
	switch e.kind {
	case timerDue, wakeDue:
		if n := &w.nodes[e.node]; e.kind == timerDue {
			n.timers = n.timers[:len(n.timers)-1]
		}
		w.trace(entry{what: stepped, node: e.node, peer: nobody})
		w.step(e.node)
	case datagramDue:
		w.datagram(e)
	case itemDue:
		w.item(e)
	case connectDue:
		w.connect(e)
	case patienceDue:
		w.giveUp(e)
	case callDue:
		w.trace(entry{what: called, node: nobody, peer: nobody, text: e.call.name})
		e.call.do()
	}
}

func (w *World) describe(e *event) string {
	switch e.kind {
	case timerDue, wakeDue:
		return w.Name(e.node)
	case callDue:
		return e.call.name
	}
	return fmt.Sprintf("%s to %s", w.Name(w.paths[e.path].from), w.Name(w.paths[e.path].to))
}

// Failure is a run that went wrong: what is needed to see it again, and the
// end of its trace.
type Failure struct {
	Err    error
	Seed   uint64
	Now    core.Time
	Events uint64
	Hash   uint64
	Lines  []string
}

// Fail returns err as a Failure: together with where the world stands.
func (w *World) Fail(err error) error {
	return &Failure{Err: err, Seed: w.cfg.Seed, Now: w.now, Events: w.events, Hash: w.hash.sum, Lines: w.Lines()}
}

// Error returns the error, the seed and the lines of the trace.
func (f *Failure) Error() string {
	return fmt.Sprintf("%v (seed %d, %v, event %d, hash %016x); the trace ends with\n\t%s",
		f.Err, f.Seed, time.Duration(f.Now), f.Events, f.Hash, strings.Join(f.Lines, "\n\t"))
}

// Unwrap returns Err.
func (f *Failure) Unwrap() error { return f.Err }

// Sweep runs a scenario undisturbed, and then once more for every event of that
// run (every stride-th, where stride is more than 1). The scenario makes a world
// of always the same seed, has its fault happen AtEvent of the index that it is
// given, and returns how many events it took. The first error ends the sweep;
// it reports the index.
func Sweep(stride uint64, scenario func(index uint64) (events uint64, err error)) error {
	events, err := scenario(Undisturbed)
	if err != nil {
		return fmt.Errorf("sim: undisturbed: %w", err)
	}
	for index := uint64(0); index < events; index += max(stride, 1) {
		if _, err := scenario(index); err != nil {
			return fmt.Errorf("sim: disturbed at event %d of %d: %w", index, events, err)
		}
	}
	return nil
}
