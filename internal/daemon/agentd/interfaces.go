package agentd

import (
	"context"
	"log/slog"
	"sync"

	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
)

// observer reports the watchers when an interface of the switch has changed.
type observer struct {
	source   nic.Source // nil: none are reported
	reported *rpc.Interfaces
	cancel   context.CancelFunc
	running  sync.WaitGroup
}

// observe begins to look at the interfaces. Those that State and Watch report are
// owned by the agent core's loop.
func (d *Daemon) observe() {
	o := &d.interfaces
	ctx, cancel := context.WithCancel(context.Background())
	o.source, o.cancel = d.cfg.Interfaces, cancel
	o.reported = d.look()
	if o.source == nil {
		return
	}
	if why := o.reported.Unavailable; why != "" && d.network != nil {
		d.log.Info("interfaces are reported once ports have addresses", slog.String("reason", why))
	} else if why != "" {
		d.log.Warn("interfaces are not reported: links that go down are found late, and trees are not held against what links carry",
			slog.String("reason", why))
	} else {
		d.log.Info("interfaces are reported", slog.Int("interfaces", len(o.reported.List)))
	}
	o.running.Go(func() { nic.Follow(ctx, o.source, d.log, func() { d.changed(ctx) }) })
	if d.network != nil {
		o.running.Go(func() { d.network.run(ctx, d.changed) })
	}
}

// changed reports the watchers of the interfaces if they differ from those that
// were reported before.
func (d *Daemon) changed(ctx context.Context) {
	if d.network != nil {
		d.network.looked.Lock()
		defer d.network.looked.Unlock()
	}
	all, err := d.cfg.Interfaces.Read()
	if d.network != nil && err == nil {
		d.network.use(all)
	}
	d.telemetry.Changed()
	now := d.seen(all, err)
	// An error says that the agent ends. Between two steps: who begins to watch
	// gets the change in the state or as an event.
	_ = d.loop.Do(ctx, func() {
		before := d.interfaces.reported
		if before.Unavailable == now.Unavailable && nic.Same(before.List, now.List) {
			return
		}
		d.interfaces.reported = now
		d.report(before, now)
		d.notify(rpc.AgentEvent{Interfaces: now})
	})
}

// report logs the interfaces that went down or came up.
func (d *Daemon) report(before, now *rpc.Interfaces) {
	was := map[string]bool{}
	for _, i := range before.List {
		was[i.Name] = i.Up
	}
	for _, i := range now.List {
		if up, known := was[i.Name]; known && up != i.Up {
			d.log.Warn("interface changed", slog.String("interface", i.Name), slog.Bool("up", i.Up))
		}
		delete(was, i.Name)
	}
	for name := range was {
		d.log.Warn("interface lost its addresses, or is gone", slog.String("interface", name))
	}
}

// look reads the interfaces; nil where none are to be reported.
func (d *Daemon) look() *rpc.Interfaces {
	if d.cfg.Interfaces == nil {
		return nil
	}
	return d.seen(d.cfg.Interfaces.Read())
}

// seen returns what is reported of the interfaces that were read: those with an address.
func (d *Daemon) seen(all []nic.Interface, err error) *rpc.Interfaces {
	switch {
	case err != nil:
		return &rpc.Interfaces{Unavailable: err.Error()}
	case d.network != nil:
		return d.network.seen(all)
	}
	return &rpc.Interfaces{List: nic.Addressed(all)}
}

// end stops looking, after the agent core's loop has ended.
func (o *observer) end() {
	o.cancel()
	o.running.Wait()
}
