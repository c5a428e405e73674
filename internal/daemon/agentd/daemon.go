package agentd

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
	"github.com/tributary-fabric/tributary/internal/driver/gnmi"
	"github.com/tributary-fabric/tributary/internal/driver/lldp"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/ground/version"
)

// Daemon is a running agent.
type Daemon struct {
	cfg    Config
	log    *slog.Logger
	clock  runner.Clock
	core   *agent.Core // owned by loop
	loop   *runner.Loop[agent.Input, agent.Output]
	server *rpc.Server

	plane    dataplane.Plane
	mail     runner.Mailbox[dataplane.Event] // from the plane
	post     sync.WaitGroup                  // of the goroutine that empties mail
	commits  gate                            // owned by loop
	reported offer                           // to watchers; owned by loop

	begun chan struct{} // closed when everything is there that telemetry reads

	once sync.Once
	gone chan struct{} // closed when the daemon ends

	interfaces observer
	neighbors  *lldp.Service // nil: the agent takes no part in LLDP
	telemetry  *gnmi.Server
	network    *network // nil: a target's ports and routes, if there is one, are in the configuration

	desk runner.Desk[agent.Reply]

	mu       sync.Mutex
	watchers map[*watcher]struct{}
}

// Start starts an agent, which has promised nothing to anyone. The caller owns
// it and must Close or Kill it.
func Start(c Config) (*Daemon, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := c.checkData(); err != nil {
		return nil, err
	}
	if c.Interfaces == nil && c.discovers() {
		c.Interfaces = nic.System()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	incarnation, err := newIncarnation()
	if err != nil {
		return nil, err
	}
	machine, err := agent.New(agent.Config{
		Name: c.Switch, Incarnation: incarnation, Capability: c.Capability, PrepareLease: c.PrepareLease,
	})
	if err != nil {
		return nil, fmt.Errorf("agentd: %w", err)
	}
	listener, err := rpc.Listen(c.Listen, c.server())
	if err != nil {
		return nil, fmt.Errorf("agentd: switch %s: %w", c.Switch, err)
	}
	d := &Daemon{
		cfg: c, log: c.Log.With(slog.String("switch", c.Switch)), clock: runner.NewClock(), core: machine,
		gone:     make(chan struct{}),
		begun:    make(chan struct{}),
		watchers: map[*watcher]struct{}{},
	}
	if d.plane, err = d.newPlane(); err != nil {
		return nil, errors.Join(fmt.Errorf("agentd: switch %s: %w", c.Switch, err), listener.Close())
	}
	d.begin()
	d.telemetry, err = gnmi.Start(gnmi.Config{Source: newReporter(d, listener.Addr()), Clock: d.clock, Log: d.log})
	if err != nil {
		d.plane.Close()
		return nil, errors.Join(fmt.Errorf("agentd: %w", err), listener.Close())
	}
	d.loop, err = runner.Start(runner.Config[agent.Input, agent.Output]{Core: machine, Clock: d.clock, Apply: d.apply})
	if err != nil {
		d.telemetry.Close()
		d.plane.Close()
		return nil, errors.Join(fmt.Errorf("agentd: %w", err), listener.Close())
	}
	d.network = d.startNetwork()
	d.observe()
	d.post.Go(d.deliver)
	d.server = rpc.Serve(listener, rpc.Services{Agent: d, Telemetry: d.telemetry}, c.server())
	if err := d.announce(); err != nil {
		d.Kill()
		return nil, err
	}
	close(d.begun)
	d.telemetry.Changed()
	d.measure()
	d.log.Info("agent started", slog.String("address", d.Addr()), slog.Uint64("incarnation", incarnation),
		slog.Int("slots", c.Capability.Slots))
	return d, nil
}

// newIncarnation returns a number that no other start has had.
func newIncarnation() (uint64, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return 0, fmt.Errorf("agentd: drawing an incarnation: %w", err)
	}
	return binary.BigEndian.Uint64(b[:]) | 1, nil // zero is none
}

// Addr returns the "host:port" of the gRPC server.
func (d *Daemon) Addr() string { return d.server.Addr().String() }

// Done is closed when the agent cannot be reached any more: after Close or
// Kill, or when its listener failed, which Err reports.
func (d *Daemon) Done() <-chan struct{} { return d.server.Done() }

// Err returns, once Done is closed, why the listener failed; nil otherwise.
func (d *Daemon) Err() error { return d.server.Err() }

// Close ends the agent: managers are notified that it goes, calls under way end,
// then the trees. It returns when everything has ended.
func (d *Daemon) Close() {
	d.once.Do(func() {
		d.shutdown()
		if s := d.neighbors; s != nil {
			s.Close()
		}
		d.telemetry.Shut()
		d.server.Close()
		d.end()
		d.telemetry.Close()
		d.log.Info("agent closed")
	})
}

// Kill ends the agent as the death of its process would: packets and
// connections just stop. It returns when everything has ended. While Close
// waits for calls under way, it breaks them off.
func (d *Daemon) Kill() {
	if d.ending() {
		d.server.Kill()
	}
	d.once.Do(func() {
		d.shutdown()
		if s := d.neighbors; s != nil {
			s.Kill()
		}
		d.telemetry.Shut()
		d.end()
		d.server.Kill()
		d.telemetry.Close()
	})
}

// end ends the core and the trees.
func (d *Daemon) end() {
	d.loop.Close()
	d.interfaces.end()
	if d.network != nil {
		d.network.end()
	}
	d.plane.Close()
	d.mail.Close()
	d.post.Wait()
}

// apply carries out what a step of the agent core wants, in its loop.
func (d *Daemon) apply(_ core.Time, out *agent.Output) []agent.Input {
	defer out.Reset()
	for i := range out.Actions {
		d.act(&out.Actions[i])
	}
	for _, e := range out.Ended {
		d.log.Warn("epoch given up", slog.Uint64("group", uint64(e.Group)), slog.Uint64("epoch", uint64(e.Epoch)),
			slog.String("reason", e.Why.String()))
		d.notify(rpc.AgentEvent{Ended: &e})
	}
	for _, r := range out.Replies {
		if d.commits.holds(r) {
			continue
		}
		d.desk.Answer(r.Req, r)
		if r.Kind == agent.Drained {
			s := d.state()
			d.log.Info("draining", slog.Bool("on", s.Draining))
			d.notify(rpc.AgentEvent{State: &s})
			d.telemetry.Changed()
		}
	}
	if now := d.offered(); now != d.reported {
		d.reported = now
		s := d.state()
		d.notify(rpc.AgentEvent{State: &s})
		d.telemetry.Changed()
	}
	return nil
}

// state returns what State and Watch report. It runs in the agent core's loop.
func (d *Daemon) state() rpc.AgentState {
	return rpc.AgentState{
		Switch: d.cfg.Switch, Incarnation: d.core.Incarnation(), Capability: d.core.Capability(),
		Draining: d.core.Draining(), Unusable: d.core.Unusable(), Holds: d.core.Holds(), Version: version.String(),
		Interfaces: d.interfaces.reported, Outlives: d.cfg.Target != nil, TakesRoutes: d.network != nil,
	}
}
