package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
	"github.com/tributary-fabric/tributary/internal/driver/p4rt"
	"github.com/tributary-fabric/tributary/p4"
	"github.com/tributary-fabric/tributary/topology"
)

// ErrUnusable is wrapped by what is refused while the target cannot be worked
// with; the rest of the text reports why, and what is to be done.
var ErrUnusable = errors.New("pipeline: the P4 target cannot be used now")

// Reasons that are none to worry about.
var (
	errApart = errors.New("not connected yet")
	errBegun = errors.New("it is being prepared")
)

// stage is how far the driver is with its target.
type stage uint8

const (
	apart      stage = iota // there is no session in which it could write
	recovering              // the target is brought to hold what is wanted
	usable
)

// driver keeps the target as it is wanted. One goroutine owns it.
type driver struct {
	plane  *Plane
	ledger *ledger
	counts counts

	stage   stage
	why     error      // not usable
	cookie  uint64     // of the push that the epochs are on; 0: none
	written p4.Program // what the target holds, in the form of Schema.Normal; while usable
	changed bool       // what is wanted may differ from that
	network p4.State   // ports and routes that are wanted
	moved   bool       // they have changed, which epochs may be written for anew
	attempt uint64     // counts recoveries, and what makes one pointless: what an earlier one reports is of no interest
	busy    bool       // a recovery is under way
	again   bool       // ... and another one is to follow
	retry   bool       // a recovery has failed, and nothing but time is to report when to try again
	next    time.Time  // when tick is due
	checks  checks     // of what the program needs; while usable
	down    []string   // interfaces of its ports that are set down, or were last
	isDown  bool       // ... that are
}

func (d *driver) init(p *Plane) {
	d.plane, d.ledger = p, newLedger()
	d.network = p4.State{Ports: p.cfg.Target.Ports, Routes: p.cfg.Target.Routes}
	d.next = time.Now().Add(maxRead)
	// An agent that was here before had fewer epochs than milliseconds.
	d.ledger.serial = uint64(time.Now().UnixMilli())
	d.refuse(apart, d.about(errApart))
}

// offer reports to the agent what it may promise.
func (d *driver) offer() {
	if why := d.lack(); why != nil {
		d.plane.cfg.Notify(dataplane.Offer{Unusable: why.Error(), Deaf: errors.Is(why, ErrSetDown)})
		return
	}
	d.plane.cfg.Notify(dataplane.Offer{Capability: d.plane.cfg.Capability})
}

// refuse goes to a stage in which nothing is promised.
func (d *driver) refuse(s stage, why error) {
	reported := d.stage != usable && d.why != nil && d.why.Error() == why.Error()
	d.stage, d.why = s, why
	if !reported {
		level := slog.LevelWarn
		if errors.Is(why, errApart) || errors.Is(why, errBegun) { // in good order
			level = slog.LevelInfo
		}
		d.plane.cfg.Log.Log(context.Background(), level, "the P4 target cannot be used", slog.Any("reason", why))
		d.offer()
	}
}

// lack returns why nothing can be promised, or nil.
func (d *driver) lack() error {
	switch {
	case d.stage != usable:
		return d.why
	case d.checks.lack != nil:
		return d.about(d.prerequisite())
	case len(d.network.Ports) == 0:
		return d.about(ErrNoPorts)
	}
	return nil
}

// unusable is lack as the answer to what is asked.
func (d *driver) unusable() error {
	if why := d.lack(); why != nil {
		return fmt.Errorf("%w: %w", ErrUnusable, why)
	}
	return nil
}

func (d *driver) open(socket uint64, group uint32) (index int, err error) {
	if err := d.unusable(); err != nil {
		return 0, err
	}
	t, err := d.ledger.open(socket, group)
	if err != nil {
		return 0, err
	}
	d.plane.hand.open(t.index)
	d.counts.open(t.index)
	return t.index, nil
}

func (d *driver) install(ctx context.Context, socket uint64, c *switchreduce.Config) (topology.Reducer, error) {
	if err := d.unusable(); err != nil {
		return topology.Reducer{}, err
	}
	t := d.ledger.trees[socket]
	if t == nil {
		return topology.Reducer{}, ErrNoTree
	}
	now := d.plane.cfg.Clock.Now()
	e, err := d.ledger.install(now, t, c)
	if err != nil {
		return topology.Reducer{}, err
	}
	d.changed = true
	d.plane.hand.install(now, t.index, c)
	d.counts.install(t.index, c)
	if err := d.write(ctx); err != nil {
		d.forget(e)
		d.repair(ctx, err)
		return topology.Reducer{}, err
	}
	return e.reducer(), nil
}

func (d *driver) retire(socket uint64, number uint32) {
	if t := d.ledger.trees[socket]; t != nil {
		if e := t.find(number); e != nil {
			d.forget(e)
		}
	}
}

// forget takes an epoch from the ledger and the hand-over; the target still has
// it.
func (d *driver) forget(e *epoch) {
	d.changed = true
	d.ledger.retire(e)
	d.plane.hand.retire(d.plane.cfg.Clock.Now(), e.tree.index, e.cfg.Epoch)
}

func (d *driver) shut(socket uint64) {
	if t := d.ledger.trees[socket]; t != nil {
		d.changed = true
		d.ledger.shut(t)
		counted := d.plane.hand.shut(t.index)
		d.counts.shut(t.index, &counted)
	}
}

// abandon ends all epochs.
func (d *driver) abandon(why error) {
	for _, e := range d.ledger.all() {
		d.forget(e)
		d.plane.cfg.Notify(dataplane.Ended{Socket: e.tree.socket, Epoch: e.cfg.Epoch, Err: why})
	}
}

// want returns what the target is to hold, in the form of Schema.Normal.
func (d *driver) want() (p4.Program, error) {
	state := d.network
	state.Trees, state.Epochs = d.ledger.state()
	program, err := p4.Translate(&state)
	if err != nil {
		return p4.Program{}, err
	}
	return d.plane.schema.Normal(program)
}

// write writes the difference between what the target holds and what it is to
// hold.
func (d *driver) write(ctx context.Context) error {
	want, err := d.want()
	if err != nil {
		return err
	}
	if updates := d.plane.schema.Diff(d.written, want); len(updates) > 0 {
		if err := d.plane.client.Write(ctx, updates); err != nil {
			return err
		}
	}
	d.written, d.changed, d.moved = want, false, false
	return nil
}

// rewire takes other ports and routes. An epoch goes on with them, by other ways if
// need be; one that has a neighbour without a way ends.
func (d *driver) rewire(network p4.State) error {
	if err := network.Validate(); err != nil {
		return err
	}
	if slices.Equal(network.Ports, d.network.Ports) && slices.Equal(network.Routes, d.network.Routes) {
		return nil
	}
	before := d.lack()
	d.network, d.changed, d.moved = network, true, true
	if now := d.lack(); d.stage == usable && (before == nil) != (now == nil) {
		d.offer()
	}
	for _, e := range d.ledger.all() {
		alone := network
		alone.Trees, alone.Epochs = []p4.Tree{e.tree.state()}, []p4.Epoch{e.state()}
		if err := alone.Validate(); err != nil {
			d.forget(e)
			d.plane.cfg.Notify(dataplane.Ended{Socket: e.tree.socket, Epoch: e.cfg.Epoch, Err: err})
		}
	}
	return nil
}

// settle writes what has changed since the last time.
func (d *driver) settle(ctx context.Context) {
	if soon := time.Now().Add(d.ledger.interval()); soon.Before(d.next) {
		d.next = soon
	}
	if d.stage != usable || !d.changed {
		return
	}
	if err := d.write(ctx); err != nil {
		d.repair(ctx, err)
	}
}

// repair is for a write that has failed: part of it may be there. Where the target
// has refused something, it is brought to hold what is wanted at once.
func (d *driver) repair(ctx context.Context, err error) {
	var refused *p4rt.WriteError
	switch {
	case errors.Is(err, p4.ErrState): // nothing was written
		return
	case errors.As(err, &refused):
		var want p4.Program
		if want, err = d.want(); err == nil {
			if _, err = d.plane.client.Reconcile(ctx, want); err == nil {
				d.written, d.changed, d.moved = want, false, false
				return
			}
		}
	}
	d.failed(err)
}

// tick is due when the traffic counters are to be read, or a recovery is to be
// tried again.
func (d *driver) tick(ctx context.Context) {
	defer func() {
		d.next = time.Now().Add(min(d.ledger.interval(), d.plane.cfg.checkInterval()))
		if d.stage == usable && d.checks.next.Before(d.next) {
			d.next = d.checks.next
		}
	}()
	d.check(time.Now())
	if d.stage == recovering && d.retry {
		d.recover(ctx)
	}
	if d.stage != usable || len(d.ledger.all()) == 0 {
		return
	}
	cells, err := d.traffic(ctx)
	if err != nil {
		d.plane.cfg.Log.Debug("reading the traffic counters", slog.Any("error", err)) // the session reports if that stays so
		return
	}
	d.lapse(ctx, cells)
}

// lapse takes the traffic counters.
func (d *driver) lapse(ctx context.Context, cells []uint64) {
	now := d.plane.cfg.Clock.Now()
	for _, e := range d.ledger.all() {
		if d.plane.hand.sentUp(e.tree.index, e.cfg.Epoch) {
			e.sent = now
		}
	}
	expired, quiet := d.ledger.read(now, cells)
	for _, e := range quiet {
		d.counts.kept(e.tree.index)
		d.plane.give(keepAlive(e))
	}
	for _, e := range expired {
		d.changed = true
		d.counts.expired(e.tree.index)
		d.plane.hand.retire(now, e.tree.index, e.cfg.Epoch)
		d.plane.cfg.Notify(dataplane.Ended{Socket: e.tree.socket, Epoch: e.cfg.Epoch})
	}
	if len(expired) > 0 {
		d.settle(ctx)
	}
}

// traffic reads the traffic counters.
func (d *driver) traffic(ctx context.Context) ([]uint64, error) {
	cells, err := d.plane.client.Counter(ctx, p4.CounterTraffic)
	return packetsOf(cells), err
}
