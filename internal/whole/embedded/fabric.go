package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/driver/hooks"
	"github.com/tributary-fabric/tributary/internal/driver/loopback"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// Errors of a fabric. They are wrapped; use errors.Is.
var (
	// ErrConfig: there is no fabric of that configuration.
	ErrConfig = errors.New("embedded: invalid configuration")
	// ErrUnknown: the fabric has no such host or switch.
	ErrUnknown = errors.New("embedded: no such node")
	// ErrState: the node is dead and should live, or lives and should be dead.
	ErrState = errors.New("embedded: the node is not in the state for that")
	// ErrClosed: the fabric was closed.
	ErrClosed = errors.New("embedded: the fabric is closed")
)

// heartbeat is long: the death of an agent shows by its connection, and what
// holds up the process is none.
const heartbeat = 10 * time.Second

// data is the address of switches for packets of collectives.
var data = netip.MustParseAddr("127.0.0.1")

// Config says what fabric to run.
type Config struct {
	Topology *topology.Graph

	// WithoutManager leaves out the manager and the agents: all operations run
	// over hosts.
	WithoutManager bool

	Window     uint32 // largest number of chunks in flight, a power of two; 0: hostlib's default
	ChunkBytes int    // largest payload of a packet, in bytes; 0: hostlib's default

	// OfferWait is how long the making of a communicator waits for its first
	// tree of switches; 0: hostlib's default.
	OfferWait time.Duration

	Options []hostlib.GroupOption // of every communicator, beside hostlib.OnTree

	// Rails gives each host a rail at every address that the topology has for it, which
	// are of 127.0.0.0/8: its packets to a switch come from there.
	Rails bool
	Hooks func(host string) hooks.Hooks // of the hosts, for tests; nil: none

	// Unattended are the names of switches without an agent: they only forward.
	Unattended []string
	Core       manager.Config // bounds and periods of the manager; zero fields have its defaults
	Store      managerd.Store // what survives RestartManager; nil: nothing does
	Model      pathsel.Model  // by which it chooses trees; the zero value is pathsel.DefaultModel

	Log      *slog.Logger      // of all nodes; nil: none
	Progress func(line string) // reports how the start goes on; nil: not at all
}

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	switch {
	case c.Topology == nil:
		return fmt.Errorf("%w: no topology", ErrConfig)
	case c.Topology.Hosts() == 0:
		return fmt.Errorf("%w: the topology has no hosts", ErrConfig)
	case c.ChunkBytes < 0 || c.OfferWait < 0:
		return fmt.Errorf("%w: chunks of %d bytes, a wait of %v", ErrConfig, c.ChunkBytes, c.OfferWait)
	}
	for _, name := range c.Unattended {
		if n, ok := c.Topology.Lookup(name); !ok || !c.Topology.IsSwitch(n) {
			return fmt.Errorf("%w: there is no switch %q to be without an agent", ErrConfig, name)
		}
	}
	return nil
}

// Fabric is a running fabric. Its methods may be called from any goroutine.
type Fabric struct {
	cfg     Config
	graph   *topology.Graph
	hosts   []*hostlib.Host // by NodeID
	address string          // of the manager; empty: none from the start
	claim   *loopback.Claim // where manager and agents listen, and again when they are restarted

	managerConfig managerd.Config // for RestartManager

	mu       sync.Mutex
	closed   bool
	manager  *managerd.Daemon // nil: dead, or none from the start
	switches []station        // by switch index
	apart    []*hostlib.Host  // by NodeID: the hosts once more, without a manager; nil until needed
}

// station is where a switch's agent lives.
type station struct {
	agent   *agentd.Daemon // nil: dead
	address string         // of its gRPC server, kept over a restart
}

// Start starts a fabric and returns when the manager has every switch. The
// caller owns it and must Close it; ctx is for the start alone.
func Start(ctx context.Context, c Config) (*Fabric, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	claim, err := loopback.New()
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	f := &Fabric{cfg: c, graph: c.Topology, claim: claim, switches: make([]station, c.Topology.Switches())}
	if err := f.start(ctx); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *Fabric) start(ctx context.Context) (err error) {
	if f.cfg.WithoutManager {
		f.cfg.Progress("without a manager")
	} else {
		if err := f.startSwitches(); err != nil {
			return err
		}
		if err := f.startManager(ctx); err != nil {
			return err
		}
	}
	if f.hosts, err = f.join(ctx, f.address); err != nil {
		return err
	}
	f.cfg.Progress(fmt.Sprintf("%d hosts have joined", len(f.hosts)))
	return nil
}

func (f *Fabric) startSwitches() error {
	for i := range f.switches {
		if f.unattended(i) {
			continue
		}
		if err := f.startSwitch(i, f.claim.Listen()); err != nil {
			return err
		}
	}
	f.cfg.Progress(fmt.Sprintf("%d switch agents run", len(f.switches)-len(f.cfg.Unattended)))
	return nil
}

// unattended reports whether a switch is to have no agent.
func (f *Fabric) unattended(i int) bool {
	return slices.Contains(f.cfg.Unattended, f.graph.Name(f.graph.Switch(i)))
}

func (f *Fabric) startSwitch(i int, listen string) error {
	n := f.graph.Switch(i)
	a, err := agentd.Start(agentd.Config{
		Switch: f.graph.Name(n), Capability: f.graph.Capability(n), Listen: listen, Data: data, Log: f.cfg.Log,
	})
	if err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	f.switches[i] = station{a, a.Addr()}
	return nil
}

// startManager starts the manager and waits until it has every switch.
func (f *Fabric) startManager(ctx context.Context) error {
	agents := make(map[string]string, len(f.switches))
	for i, s := range f.switches {
		if !f.unattended(i) {
			agents[f.graph.Name(f.graph.Switch(i))] = s.address
		}
	}
	f.managerConfig = managerd.Config{
		Topology: f.graph, Agents: agents, Core: f.cfg.Core, Model: f.cfg.Model, Store: f.cfg.Store, Listen: f.claim.Listen(), Log: f.cfg.Log,
		Heartbeat: heartbeat,
	}
	m, err := managerd.Start(f.managerConfig)
	if err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	f.manager, f.address = m, m.Addr()
	f.managerConfig.Listen = f.address
	f.cfg.Progress("the manager listens at " + f.address)
	for i := range f.switches {
		if f.unattended(i) {
			continue
		}
		if err := f.awaitSwitch(ctx, m, i, true); err != nil {
			return err
		}
	}
	f.cfg.Progress(fmt.Sprintf("the manager has all %d switches", len(agents)))
	return nil
}

// join makes a host for every host of the topology. Without a manager's address they run
// all operations over hosts.
func (f *Fabric) join(ctx context.Context, manager string) ([]*hostlib.Host, error) {
	hosts := make([]*hostlib.Host, 0, f.graph.Hosts())
	var mu sync.Mutex
	resolve := func(_ context.Context, name string) (string, error) {
		n, ok := f.graph.Lookup(name)
		mu.Lock()
		defer mu.Unlock()
		if !ok || int(n) >= len(hosts) {
			return "", fmt.Errorf("embedded: %s is no host of the fabric, or has not joined yet", name)
		}
		return hosts[n].Addr(), nil
	}
	for n := range topology.NodeID(f.graph.Hosts()) {
		joining := ctx
		if f.cfg.Hooks != nil {
			joining = hooks.With(ctx, f.cfg.Hooks(f.graph.Name(n)))
		}
		h, err := hostlib.Join(joining, hostlib.Config{
			Name: f.graph.Name(n), Manager: manager, Log: f.cfg.Log, Resolve: resolve, Rails: f.railsOf(n),
			Window: f.cfg.Window, ChunkBytes: f.cfg.ChunkBytes, OfferWait: f.cfg.OfferWait,
		})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("embedded: %w", err), closeAll(hosts))
		}
		mu.Lock()
		hosts = append(hosts, h)
		mu.Unlock()
	}
	return hosts, nil
}

// railsOf returns the rails of a host; nil: it has none but its address.
func (f *Fabric) railsOf(host topology.NodeID) (rails []hostlib.Rail) {
	for _, l := range f.graph.Adjacent(host) {
		if a := f.graph.AddressAt(l, host); f.cfg.Rails && a.IsValid() {
			rails = append(rails, hostlib.Rail{Name: f.graph.Name(f.graph.Across(l, host)), Address: a.String()})
		}
	}
	return rails
}

// closeAll closes hosts at once: each says goodbye to others.
func closeAll(hosts []*hostlib.Host) error {
	errs := make([]error, len(hosts))
	var all sync.WaitGroup
	for i, h := range hosts {
		all.Go(func() { errs[i] = h.Close(context.Background()) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Close ends every node and returns when all have ended. Communicators that
// were not left end with an error.
func (f *Fabric) Close() error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil
	}
	f.closed = true
	manager, switches, apart := f.manager, f.switches, f.apart
	f.manager, f.switches = nil, make([]station, len(switches))
	f.mu.Unlock()
	err := errors.Join(closeAll(f.hosts), closeAll(apart))
	if manager != nil {
		manager.Close()
	}
	var all sync.WaitGroup
	for _, s := range switches {
		if s.agent != nil {
			all.Go(s.agent.Close)
		}
	}
	all.Wait()
	return errors.Join(err, f.claim.Release())
}

// Topology returns the fabric's graph.
func (f *Fabric) Topology() *topology.Graph { return f.graph }
