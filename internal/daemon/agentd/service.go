package agentd

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/driver/processor"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/topology"
)

var _ rpc.Agent = (*Daemon)(nil)

// ErrSlowWatcher ends a Watch whose events are not taken.
var ErrSlowWatcher = errors.New("agentd: the watcher is too slow")

// maxEvents is the events that wait for one watcher at most.
const maxEvents = 4096

// State implements rpc.Agent.
func (d *Daemon) State(ctx context.Context) (s rpc.AgentState, err error) {
	err = d.loop.Do(ctx, func() { s = d.state() })
	return s, d.excuse(err)
}

// Prepare implements rpc.Agent.
func (d *Daemon) Prepare(ctx context.Context, p agent.Prepare) (netip.AddrPort, error) {
	r, err := d.ask(ctx, func(req uint64) agent.Input { p.Req = req; return p })
	return r.Addr, err
}

// Commit implements rpc.Agent.
func (d *Daemon) Commit(ctx context.Context, c agent.Commit) (topology.Reducer, error) {
	r, err := d.ask(ctx, func(req uint64) agent.Input { c.Req = req; return c })
	return r.Reducer, err
}

// Remove implements rpc.Agent.
func (d *Daemon) Remove(ctx context.Context, r agent.Remove) error {
	_, err := d.ask(ctx, func(req uint64) agent.Input { r.Req = req; return r })
	return err
}

// Drain implements rpc.Agent.
func (d *Daemon) Drain(ctx context.Context, on bool) error {
	_, err := d.ask(ctx, func(req uint64) agent.Input { return agent.Drain{Req: req, On: on} })
	return err
}

// ask posts a request and waits for its reply; a refusal is an error.
func (d *Daemon) ask(ctx context.Context, request func(req uint64) agent.Input) (agent.Reply, error) {
	r, err := d.desk.Ask(ctx, d.gone, func(req uint64) error { return d.loop.Post(ctx, request(req)) })
	if err == nil && r.Kind == agent.Refused {
		return r, r.Refusal
	}
	return r, d.excuse(err)
}

// excuse turns the error of a loop that has ended into the service's.
func (d *Daemon) excuse(err error) error {
	if errors.Is(err, runner.ErrClosed) {
		return rpc.ErrClosing
	}
	return err
}

// watcher is one who watches.
type watcher struct {
	events runner.Mailbox[rpc.AgentEvent]
}

// Watch implements rpc.Agent. Heartbeats are the server's business.
func (d *Daemon) Watch(ctx context.Context, _ time.Duration, event func(rpc.AgentEvent) error) error {
	w := &watcher{events: runner.Mailbox[rpc.AgentEvent]{Limit: maxEvents}}
	err := d.loop.Do(ctx, func() { // between two steps: no event is missed or reported twice
		s := d.state()
		w.events.Put(rpc.AgentEvent{State: &s})
		d.admit(w)
	})
	if err != nil {
		return d.excuse(err)
	}
	defer d.dismiss(w)
	for {
		events, err := w.events.Take(ctx)
		if errors.Is(err, runner.ErrClosed) {
			if d.ending() {
				return rpc.ErrClosing
			}
			return ErrSlowWatcher
		}
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := event(e); err != nil {
				return err
			}
		}
	}
}

func (d *Daemon) admit(w *watcher) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watchers[w] = struct{}{}
	if d.ending() {
		w.events.Close()
	}
}

func (d *Daemon) dismiss(w *watcher) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.watchers, w)
}

// notify hands an event to all watchers, and ends those who are too slow.
func (d *Daemon) notify(e rpc.AgentEvent) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for w := range d.watchers {
		if !w.events.Put(e) {
			w.events.Close()
		}
	}
}

// shutdown frees who waits for a reply or an event.
func (d *Daemon) shutdown() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.gone)
	for w := range d.watchers {
		w.events.Close()
	}
}

func (d *Daemon) ending() bool {
	select {
	case <-d.gone:
		return true
	default:
		return false
	}
}

// Counters implements rpc.Agent.
func (d *Daemon) Counters(ctx context.Context) (rpc.AgentCounters, error) {
	var all rpc.AgentCounters
	if err := d.loop.Do(ctx, func() { all.SlotsUsed, all.Slots = d.core.Slots() }); err != nil {
		return all, d.excuse(err)
	}
	c, err := d.plane.Census(ctx)
	if err != nil {
		return all, d.excuse(err)
	}
	if all.Trees = c.Trees; !d.cfg.Elsewhere { // there is nothing to hold them against
		all.Epochs = c.Epochs
	}
	all.Interfaces = d.look()
	if d.cfg.Processor != nil {
		if all.CPU, err = d.cfg.Processor(); err != nil {
			all.CPU = processor.Time{} // not known, which harms nothing
			d.log.Debug("the processor's time cannot be read", slog.Any("error", err))
		}
	}
	return all, nil
}
