package agentd

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/soft"
	"github.com/tributary-fabric/tributary/internal/driver/speed"
)

// measurer finds the switch's speed while no tree is there. Its fields are for tests.
type measurer struct {
	take   func() (speed.Result, error)
	pauses []time.Duration // before each further attempt
}

// pauses are how long a further measurement waits, for quieter times.
var pauses = []time.Duration{100 * time.Millisecond, 400 * time.Millisecond, time.Second, 5 * time.Second, 20 * time.Second, time.Minute}

// leastTaken are the measurements that are taken at least.
const leastTaken = 3

// errBusy says that trees were there.
var errBusy = errors.New("agentd: trees are in use")

// measure publishes the switch's speed: the best of some measurements, since what
// disturbs one only makes it slower, and of more where the last was disturbed.
func (d *Daemon) measure() {
	m := measurer{pauses: pauses}
	if p, ok := d.plane.(*soft.Plane); ok && d.cfg.Measure && !d.cfg.Capability.Speed.Known() && d.cfg.Capability.CanReduce() {
		m.take = p.Measure
		d.post.Go(func() { d.settle(m) })
	}
}

// settle measures until nothing disturbs it, or there are no pauses left.
func (d *Daemon) settle(m measurer) {
	var best, published speed.Result
	for attempt := 0; ; attempt++ {
		r, err := d.alone(m.take)
		switch {
		case errors.Is(err, errBusy):
		case err != nil:
			d.log.Debug("the speed of reduction is not measured", slog.Any("error", err))
		default:
			if best = best.Best(r); best.Better(published) {
				if published = best; d.publish(r.Calm(), best) != nil {
					return // the agent ends
				}
			}
		}
		if err == nil && r.Calm() && attempt+1 >= leastTaken || attempt == len(m.pauses) {
			return
		}
		select {
		case <-time.After(m.pauses[attempt]):
		case <-d.gone:
			return
		}
	}
}

// alone takes a measurement, if no tree is there before or after it.
func (d *Daemon) alone(take func() (speed.Result, error)) (r speed.Result, err error) {
	if d.serves() {
		return r, errBusy
	}
	if r, err = take(); err == nil && d.serves() {
		err = errBusy
	}
	return r, err
}

// serves reports whether any slots are reserved.
func (d *Daemon) serves() bool {
	used := 0
	err := d.loop.Do(context.Background(), func() { used, _ = d.core.Slots() })
	return err != nil || used > 0
}

// publish makes a speed part of what the agent reports. What asks the agent after it
// returns finds it there.
func (d *Daemon) publish(calm bool, r speed.Result) error {
	d.log.Info("speed of reduction measured", slog.String("speed", r.Speed.String()), slog.Bool("disturbed", !calm))
	c := d.cfg.Capability
	c.Speed = r.Speed
	ctx := context.Background() // the loop ends with the agent
	if err := d.loop.Post(ctx, agent.Offer{Capability: c}); err != nil {
		return err
	}
	return d.loop.Do(ctx, func() {}) // before the step that the next call waits for
}
