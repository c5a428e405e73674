package managerd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/audit"
	"github.com/tributary-fabric/tributary/internal/driver/discoverer"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/membership"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// ErrConfig is wrapped by the errors of Config.Validate.
var ErrConfig = errors.New("managerd: invalid configuration")

// The periods of a Config that names none.
const (
	DefaultHeartbeat = 500 * time.Millisecond
	DefaultCall      = 2 * time.Second
	DefaultConnect   = 5 * time.Second
	DefaultVerify    = 10 * time.Second
)

// Config is what a manager manages and where it can be reached.
type Config struct {
	Topology *topology.Graph   // the fabric; nil: nothing yet, see Daemon.SetFabric
	Agents   map[string]string // "host:port" of each switch's agent, by the switch's name; a switch without one is not used
	// Merge, if it is not nil, is called with the operator's part of the topology when
	// that has changed, and why, and makes of it what SetFabric gets. nil: the
	// operator's part is the map.
	Merge func(o Operator, cause string)
	Core  manager.Config // bounds and periods of the core; zero fields have its defaults
	Model pathsel.Model  // by which plans are made; the zero value is pathsel.DefaultModel
	Store Store          // what survives a restart; nil: nothing does

	Listen string // "host:port" of the gRPC server; port 0 takes a free one
	// Trust is the manager's certificate, for its server and towards the agents,
	// each of which has to be the one of its switch by its own. Without one, the
	// server is on loopback addresses, unless AllowPlaintext is set.
	Trust          *pki.Source
	AllowPlaintext bool
	Limits         rpc.Limits // of that server; zero fields have their defaults

	Heartbeat time.Duration // an agent that is silent for three of these is dead; 0: DefaultHeartbeat
	Call      time.Duration // time for an agent to answer one call; 0: DefaultCall
	Connect   time.Duration // time to reach an agent before that is reported; 0: DefaultConnect
	// Verify is how often trees are held against what links have carried, and how
	// busy links and CPUs are is measured; 0: DefaultVerify, below 0: never.
	Verify time.Duration

	// Membership makes the manager a node of its hosts' zone, and a monitor there:
	// a host whose node dies is down in the topology from then on, and up when it
	// is back. Nodes have the names that the topology gives the hosts. nil: hosts
	// count as up.
	Membership *membership.Config

	// Discovery is where to begin to discover the fabric, and how. Topology is the
	// operator's part then, which may be nil. Its Trust, Log, Operator and Apply are the
	// manager's own. nil: Topology is the fabric.
	Discovery *discoverer.Config

	Now func() time.Time // the clock, by which terms rise without a store; nil: time.Now

	Log   *slog.Logger // nil: none
	Audit *audit.Log   // of who has done what, which is the caller's; nil: none
}

func (c Config) withDefaults() Config {
	if c.Heartbeat == 0 {
		c.Heartbeat = DefaultHeartbeat
	}
	if c.Call == 0 {
		c.Call = DefaultCall
	}
	if c.Connect == 0 {
		c.Connect = DefaultConnect
	}
	if c.Verify == 0 {
		c.Verify = DefaultVerify
	}
	if c.Store == nil {
		c.Store = forgetful()
	}
	if c.Topology == nil {
		c.Topology, _ = (&topology.Builder{}).Build() // without anything that could be wrong
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	switch {
	case c.Listen == "":
		return fmt.Errorf("%w: no address to listen on", ErrConfig)
	case c.Heartbeat < 0 || c.Call < 0 || c.Connect < 0:
		return fmt.Errorf("%w: a period is negative: heartbeat %v, call %v, connect %v", ErrConfig, c.Heartbeat, c.Call, c.Connect)
	}
	if c.Trust != nil {
		if err := c.Trust.Expect(pki.Want{Role: pki.Manager}); err != nil {
			return fmt.Errorf("%w: %w", ErrConfig, err)
		}
	}
	var errs []error
	if err := checkFabric(c.withDefaults().Topology, c.agents()); err != nil {
		errs = append(errs, fmt.Errorf("%w: %w", ErrConfig, err))
	}
	if c.Model != (pathsel.Model{}) {
		if err := c.Model.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("%w: %w", ErrConfig, err))
		}
	}
	if err := c.Core.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("%w: %w", ErrConfig, err))
	}
	if c.Discovery != nil {
		if err := c.Discovery.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("%w: %w", ErrConfig, err))
		}
	}
	if c.Membership != nil {
		if err := c.Membership.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("%w: %w", ErrConfig, err))
		}
	}
	return errors.Join(errs...)
}

// agents returns the agents of the switches in the topology. Others may be found later,
// where something merges it.
func (c Config) agents() map[string]string {
	if c.Discovery == nil && c.Merge == nil {
		return c.Agents
	}
	return agentsIn(c.withDefaults().Topology, c.Agents)
}

// Check reports what is wrong with c on this machine: what Validate does, and an
// address that Start could not listen on, whoever has its port, also as a node of
// the zone.
func (c Config) Check() error {
	if err := c.Validate(); err != nil {
		return err
	}
	if err := rpc.CheckListen(c.Listen, c.server()); err != nil {
		return fmt.Errorf("managerd: %w", err)
	}
	if c.Membership != nil {
		if err := c.Membership.Check(context.Background()); err != nil {
			return fmt.Errorf("managerd: %w", err)
		}
	}
	return nil
}

// server reports how to serve.
func (c Config) server() rpc.ServerConfig {
	s := rpc.ServerConfig{AllowPlaintext: c.AllowPlaintext, Limits: c.Limits, Log: c.Log, Audit: c.Audit}
	if c.Trust != nil {
		s.TLS, s.Trust = c.Trust.Server(), c.Trust
	}
	return s
}

// client reports how the manager of a term reaches the agent of a switch, and
// nobody else.
func (c Config) client(name string, term uint64) rpc.ClientConfig {
	if c.Trust == nil {
		return rpc.ClientConfig{Manager: term}
	}
	return rpc.ClientConfig{Manager: term, Trust: c.Trust, TLS: c.Trust.Client(pki.Want{Role: pki.Agent, Name: name})}
}
