package discoverer

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/discovery"
	"github.com/tributary-fabric/tributary/internal/driver/gnmi/collector"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/ground/printable"
	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
	"github.com/tributary-fabric/tributary/topology"
)

const (
	queue      = 1024 // inputs that wait for the core
	maxChanges = 4096 // that News names
)

// Discoverer is discovery under way.
type Discoverer struct {
	cfg    Config
	log    *slog.Logger
	clock  runner.Clock
	core   *discovery.Core
	loop   *runner.Loop[discovery.Input, discovery.Output] // owns core, targets, news
	counts collector.Counts

	life    context.Context // of collectors and of apply
	cancel  context.CancelFunc
	running sync.WaitGroup
	begun   chan struct{} // closed when loop is set

	targets map[string]connection // by address
	changes []discovery.Change    // not yet given to Apply
	more    int
	again   bool          // Apply is to get the map, changed or not
	fresh   chan struct{} // has room for one: there are changes
}

// connection is that to a target, or the attempts to have one.
type connection struct {
	stop  context.CancelFunc
	retry chan struct{} // has room for one: the next attempt is to be made at once
}

// Start starts to discover. The caller owns it and must Close it.
func Start(c Config) (*Discoverer, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	machine, err := discovery.New(c.Core)
	if err != nil {
		return nil, err
	}
	d := &Discoverer{
		cfg: c, log: c.Log, clock: runner.NewClock(), core: machine,
		targets: map[string]connection{}, fresh: make(chan struct{}, 1), begun: make(chan struct{}),
	}
	d.life, d.cancel = context.WithCancel(context.Background())
	d.loop, err = runner.Start(runner.Config[discovery.Input, discovery.Output]{Core: machine, Clock: d.clock, Apply: d.apply, Queue: queue})
	if err != nil {
		d.cancel()
		return nil, fmt.Errorf("discoverer: %w", err) // no step was made
	}
	close(d.begun)
	if c.Apply != nil {
		d.running.Go(d.deliver)
	}
	if c.Operator != nil {
		d.operate(c.Operator)
	}
	return d, nil
}

// Close ends all connections, and returns when Apply has ended, too.
func (d *Discoverer) Close() {
	d.cancel()
	d.loop.Close()
	d.running.Wait()
}

// SetOperator makes g the operator's part of the map; nil: there is none. Apply gets the
// map in any case: g may not be all that is merged into it.
func (d *Discoverer) SetOperator(g *topology.Graph) {
	d.operate(g)
	_ = d.loop.Do(d.life, func() { d.again = true }) // its only error is that the discoverer ends
	d.stir()
}

func (d *Discoverer) operate(g *topology.Graph) {
	_ = d.loop.Post(d.life, discovery.Input{Kind: discovery.Operator, Graph: g}) // likewise
}

// apply carries out a step, in the loop.
func (d *Discoverer) apply(_ core.Time, out *discovery.Output) []discovery.Input {
	defer out.Reset()
	for _, address := range out.Drop {
		if x, ok := d.targets[address]; ok {
			x.stop()
			delete(d.targets, address)
		}
	}
	for _, address := range out.Retry {
		select {
		case d.targets[address].retry <- struct{}{}:
		default:
		}
	}
	for _, address := range out.Dial {
		d.connect(address)
	}
	for i := range out.Alarms {
		d.logAlarm(&out.Alarms[i])
	}
	if len(out.Alarms) > 0 && d.cfg.Alarm != nil {
		d.cfg.Alarm(slices.Clone(out.Alarms))
	}
	if len(out.Changes) > 0 {
		room := min(len(out.Changes), maxChanges-len(d.changes))
		d.changes = append(d.changes, out.Changes[:room]...)
		d.more += len(out.Changes) - room
		d.stir()
	}
	return nil
}

// stir says that there are changes.
func (d *Discoverer) stir() {
	select {
	case d.fresh <- struct{}{}:
	default:
	}
}

// recheck is how often Config.Wait looks whether it is over.
const recheck = 50 * time.Millisecond

// isComplete reports whether Apply may have the map.
func (d *Discoverer) isComplete() (complete bool) {
	if d.clock.Now() >= core.Time(d.cfg.Wait) {
		return true
	}
	_ = d.loop.Do(d.life, func() {
		settled, waiting := d.core.Settled()
		complete = settled && len(waiting) == 0
	}) // where the loop has ended, nobody asks
	return complete
}

func (d *Discoverer) logAlarm(a *discovery.AlarmChange) {
	attributes := []any{slog.String("kind", a.Kind.String()), slog.String("at", a.Places[0].String()), slog.String("and", a.Places[1].String()), slog.String("what", a.Text)}
	if a.Raised {
		d.log.Warn("miscabling or contradiction", attributes...)
	} else {
		d.log.Info("alarm over", attributes...)
	}
}

// connect starts the collector of a target.
func (d *Discoverer) connect(address string) {
	ctx, stop := context.WithCancel(d.life)
	x := connection{stop, make(chan struct{}, 1)}
	d.targets[address] = x
	c := d.cfg.target(address)
	c.Retry = x.retry
	c.Counts = &d.counts
	isUp := false
	// What comes of a target that was dropped meanwhile is nobody's.
	post := func(in discovery.Input) {
		in.Target = address
		_ = d.loop.Post(ctx, in)
	}
	c.Connected = func(name string) {
		isUp = true
		d.log.Info("target connected", slog.String("target", address), slog.String("certificate", name))
		post(discovery.Input{Kind: discovery.Connected, Name: name})
	}
	c.Report = func(dev *openconfig.Device) {
		d.report(ctx, address, discovery.FactsOf(dev))
	}
	last := ""
	c.Ended = func(err error) {
		kind, why := discovery.Failed, printable.Text(err.Error())
		if isUp {
			kind = discovery.Lost
		}
		if isUp || why != last {
			d.log.Warn("target not connected", slog.String("target", address), slog.String("error", why))
		}
		isUp, last = false, why
		post(discovery.Input{Kind: kind, Why: why})
	}
	d.running.Go(func() {
		defer stop()
		<-d.begun
		if err := collector.Run(ctx, c); err != nil {
			post(discovery.Input{Kind: discovery.Failed, Why: err.Error()})
		}
	})
}

// report gives the core what a target says of itself, and returns when the loop has taken it: of
// no target more than that waits, and the next is what it says then.
func (d *Discoverer) report(ctx context.Context, address string, f *discovery.Facts) {
	if d.loop.Post(ctx, discovery.Input{Kind: discovery.Reported, Target: address, Facts: f}) == nil {
		_ = d.loop.Do(ctx, func() {}) // its only error is that the target was dropped, or all ends
	}
}

// deliver gives Apply each map after the one before.
func (d *Discoverer) deliver() {
	for begun := false; ; {
		select {
		case <-d.life.Done():
			return
		case <-d.fresh:
		}
		var n News
		if begun = begun || d.isComplete(); !begun {
			if runner.Pause(d.life, recheck) != nil {
				return
			}
			d.stir()
			continue
		}
		began := time.Now()
		if d.loop.Do(d.life, func() {
			n = News{Changes: d.changes, More: d.more, Whole: d.again}
			d.changes, d.more, d.again = nil, 0, false
			if n.Structural() {
				n.Map = d.core.Copy()
			}
		}) != nil {
			return
		}
		if len(n.Changes) == 0 && !n.Whole {
			continue
		}
		n.Map = n.Sorted()
		d.cfg.Apply(n)
		// While a large fabric is found, each map costs more than the changes that it has.
		if n.Structural() && runner.Pause(d.life, min(2*time.Since(began), maxPause)) != nil {
			return
		}
	}
}

// maxPause is the longest pause after a map has been put into effect.
const maxPause = 300 * time.Millisecond

// State is what discovery knows.
type State struct {
	discovery.Map
	Alarms  []discovery.Alarm
	Counts  discovery.Counts
	Settled bool     // nothing more is expected of what is known now
	Waiting []string // addresses of targets that have not answered
}

// State returns what is known now.
func (d *Discoverer) State(ctx context.Context) (s State, err error) {
	err = d.loop.Do(ctx, func() {
		s = State{Map: d.core.Map(), Alarms: d.core.Alarms(), Counts: d.core.Counts()}
		s.Settled, s.Waiting = d.core.Settled()
	})
	return s, err
}

// Alarms returns those that hold, and what there is.
func (d *Discoverer) Alarms(ctx context.Context) (all []discovery.Alarm, n discovery.Counts, err error) {
	err = d.loop.Do(ctx, func() { all, n = d.core.Alarms(), d.core.Counts() })
	return all, n, err
}

// Counts returns what the connections have counted.
func (d *Discoverer) Counts() *collector.Counts { return &d.counts }

// When returns when a moment of the core was.
func (d *Discoverer) When(t core.Time) time.Time { return d.clock.At(t) }
