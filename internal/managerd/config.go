package managerd

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/topology"
)

// ErrConfig is wrapped by the errors of Config.Validate.
var ErrConfig = errors.New("managerd: invalid configuration")

// The periods of a Config that names none.
const (
	DefaultHeartbeat = 500 * time.Millisecond
	DefaultCall      = 2 * time.Second
	DefaultConnect   = 5 * time.Second
)

// Config is what a manager manages and where it can be reached.
type Config struct {
	Topology *topology.Graph   // the fabric
	Agents   map[string]string // "host:port" of each switch's agent, by the switch's name; a switch without one is not used
	Core     manager.Config    // bounds and periods of the core; zero fields have its defaults
	Store    Store             // what survives a restart; nil: nothing does

	Listen   string      // "host:port" of the gRPC server; port 0 takes a free one
	TLS      *tls.Config // of the gRPC server; nil: no encryption
	AgentTLS *tls.Config // towards the agents; nil: no encryption

	Heartbeat time.Duration // an agent that is silent for three of these is dead; 0: DefaultHeartbeat
	Call      time.Duration // time for an agent to answer one call; 0: DefaultCall
	Connect   time.Duration // time to reach an agent before that is told; 0: DefaultConnect

	Log *slog.Logger // nil: none
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
	if c.Store == nil {
		c.Store = new(Memory)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	switch {
	case c.Topology == nil:
		return fmt.Errorf("%w: no topology", ErrConfig)
	case c.Listen == "":
		return fmt.Errorf("%w: no address to listen on", ErrConfig)
	case c.Heartbeat < 0 || c.Call < 0 || c.Connect < 0:
		return fmt.Errorf("%w: a period is negative: heartbeat %v, call %v, connect %v", ErrConfig, c.Heartbeat, c.Call, c.Connect)
	}
	var errs []error
	for name, address := range c.Agents {
		if n, ok := c.Topology.Lookup(name); !ok || !c.Topology.IsSwitch(n) {
			errs = append(errs, fmt.Errorf("%w: agent at %q: the topology has no switch %q", ErrConfig, address, name))
		} else if address == "" {
			errs = append(errs, fmt.Errorf("%w: agent of switch %s has no address", ErrConfig, name))
		}
	}
	if err := c.Core.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("%w: %w", ErrConfig, err))
	}
	return errors.Join(errs...)
}
