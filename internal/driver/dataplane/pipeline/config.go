package pipeline

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
	"github.com/tributary-fabric/tributary/internal/driver/p4rt"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/p4"
	"github.com/tributary-fabric/tributary/topology"
)

// ErrConfig is wrapped by the errors of Config.Validate.
var ErrConfig = errors.New("pipeline: invalid configuration")

// Target is a P4 target, and its place in the network.
type Target struct {
	Address string     // of its P4Runtime server: "host:port", or "unix:/path"
	Device  uint64     // its device id
	Ports   []p4.Port  // that have an address, to begin with; Plane.Network changes them
	Routes  []p4.Route // to all hosts and neighbours, likewise
	// Replace reports to push the program, too, to a target that holds a
	// stranger's. An earlier or later version of this one is always replaced.
	Replace bool
	// TLS is how its server is reached, read anew for each connection; nil: without
	// encryption.
	TLS   func() (*tls.Config, error)
	Login p4rt.Login // that its server asks for; zero: it asks for none
}

// Validate reports what is wrong with t; the error wraps ErrConfig.
func (t *Target) Validate() error {
	state := p4.State{Ports: t.Ports, Routes: t.Routes}
	if err := state.Validate(); err != nil {
		return fmt.Errorf("%w: target %s: %w", ErrConfig, t.Address, err)
	}
	if _, _, err := p4rt.NetworkOf(t.Address); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}

// deadline is the time for a target to answer: below a manager's for an agent.
const deadline = 1500 * time.Millisecond

// client reports how to reach the target. Of two agents of one switch the one that
// was started last is primary: the other may hang.
func (t *Target) client() p4rt.Config {
	return p4rt.Config{
		Target: t.Address, Device: t.Device, TLS: t.TLS, Login: t.Login, Deadline: deadline,
		Election: p4rt.Election{Low: uint64(time.Now().UnixNano())},
		Pipeline: p4rt.Pipeline{P4Info: p4.Info(), Device: p4.DeviceConfig(), Order: p4.TableOrder()},
	}
}

// Config is a Target and whose it is.
type Config struct {
	Target     Target
	Capability topology.Capability // what is offered of the target; at most Limits
	Clock      runner.Clock
	Log        *slog.Logger
	Notify     func(dataplane.Event)

	adjust func(*p4rt.Config) // of the session, for tests; nil: nothing
	checks time.Duration      // between two checks of the target, for tests; 0: checkInterval
}

func (c *Config) checkInterval() time.Duration { return cmp.Or(c.checks, checkInterval) }

// Window is the largest window of a tree that bmv2 bears, in chunks: the queue of
// each of its ports has room for 64 packets, and drops what is more.
const Window = 64

// Limits returns what a target with the program can do: every function on every
// type, since what the program does not reduce is handed over.
func Limits() topology.Capability {
	return topology.Capability{
		Functions: topology.AllFunctions(), Types: topology.AllTypes(),
		Slots: p4.Slots, Children: p4.Children, Chunk: p4.Chunk, Window: Window, Plain: true,
	}
}

// Within returns as much of a capability as a target with the program can do. Its
// window is that of the capability, for a target with other queues than bmv2's;
// 0: as in Limits.
func Within(c topology.Capability) topology.Capability {
	most := Limits()
	return topology.Capability{
		Functions: c.Functions & most.Functions, Types: c.Types & most.Types,
		Slots: min(c.Slots, most.Slots), Children: min(c.Children, most.Children), Chunk: min(c.Chunk, most.Chunk),
		Window: cmp.Or(c.Window, most.Window), Speed: c.Speed, Plain: true,
	}
}

// Validate reports what is wrong with c; the error wraps ErrConfig.
func (c Config) Validate() error {
	if err := c.Target.Validate(); err != nil {
		return err
	}
	if err := c.Capability.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	most := Within(c.Capability)
	if most.Window = c.Capability.Window; c.Capability != most {
		return fmt.Errorf("%w: capability %+v is more than the program's, %+v", ErrConfig, c.Capability, Limits())
	}
	return nil
}

// Remote reports whether the P4Runtime server is reached over a network, where
// others could read and write what is said.
func (t *Target) Remote() (bool, error) {
	network, address, err := p4rt.NetworkOf(t.Address)
	if err != nil || network == "unix" {
		return false, err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, err
	}
	a, err := netip.ParseAddr(host)
	return host != "localhost" && (err != nil || !a.IsLoopback()), nil
}
