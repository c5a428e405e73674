package discoverer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/discovery"
	"github.com/tributary-fabric/tributary/internal/driver/gnmi/collector"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/topology"
)

// ErrConfig is wrapped by the errors of Config.Validate.
var ErrConfig = errors.New("discoverer: invalid configuration")

// Config says what to discover, and what to do with it.
type Config struct {
	Core discovery.Config
	// Trust is the own certificate towards agents, each of which has the name of its
	// switch by its own. Without one agents are reached in plaintext.
	Trust *pki.Source
	// Others are the targets that are no agents of Tributary: how they are reached, by
	// their addresses. The first that has an address counts.
	Others   []Other
	Operator *topology.Graph  // the operator's part; nil: none
	Limits   collector.Limits // Ports and Neighbors are by Core

	// Wait is how long Apply does not get a map in which something is missing: targets that
	// have not answered yet. It counts from the start.
	Wait time.Duration
	// Apply puts a map into effect. It gets each after the one before has been put into
	// effect, and may wait. nil: nobody does.
	Apply func(News)
	// Alarm gets the alarms that are raised, and those that hold no more. It must not wait. nil: they are
	// logged alone.
	Alarm func([]discovery.AlarmChange)
	Log   *slog.Logger // nil: none
}

// Other is how gNMI targets without an agent of Tributary are reached.
type Other struct {
	Addresses          []netip.Prefix
	TLS                *tls.Config // nil: plaintext
	Username, Password string
	Plaintext          bool // the password may be sent without encryption
}

func (o *Other) has(a netip.Addr) bool {
	for _, p := range o.Addresses {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// News is what has changed in the map, and where it is another graph than before, the map.
type News struct {
	discovery.Map                    // empty if the changes are not structural
	Changes       []discovery.Change // the first ones
	More          int                // beyond Changes
	Whole         bool               // the operator's part is another
}

// Structural reports whether the map may be another graph than before.
func (n *News) Structural() bool {
	if n.More > 0 || n.Whole {
		return true
	}
	for i := range n.Changes {
		if n.Changes[i].What.Structural() {
			return true
		}
	}
	return false
}

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	if err := c.Core.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if c.Trust != nil {
		if err := c.Trust.Expect(pki.Want{Role: c.Trust.Identity().Role}); err != nil {
			return fmt.Errorf("%w: %w", ErrConfig, err)
		}
	}
	for i := range c.Others {
		if o := &c.Others[i]; o.Password != "" && o.TLS == nil && !o.Plaintext {
			return fmt.Errorf("%w: the password of targets %v would be sent without encryption; give an authority, or allow plaintext", ErrConfig, o.Addresses)
		}
	}
	return nil
}

// target returns how an address is reached.
func (c *Config) target(address string) collector.Config {
	to := collector.Config{Address: address, Limits: c.Limits, Log: c.Log}
	if to.Limits.Ports = c.Core.MaxPorts; to.Limits.Ports > 0 {
		to.Limits.Ports += collector.Spare
	}
	if to.Limits.Neighbors = c.Core.MaxNeighbors; to.Limits.Neighbors > 0 {
		to.Limits.Neighbors += collector.Spare
	}
	if at, err := netip.ParseAddrPort(address); err == nil {
		if o := c.other(at.Addr()); o != nil {
			o.reach(&to)
			return to
		}
	} else if len(c.Others) > 0 {
		to.Prepare = c.resolve()
	}
	if c.Trust != nil {
		to.TLS, to.Certified = c.Trust.Client(pki.Want{Role: pki.Agent}), true
	}
	return to
}

// other returns how an address is reached that is no agent's; nil: it may be one.
func (c *Config) other(a netip.Addr) *Other {
	i := slices.IndexFunc(c.Others, func(o Other) bool { return o.has(a) })
	if i < 0 {
		return nil
	}
	return &c.Others[i]
}

func (o *Other) reach(to *collector.Config) {
	to.TLS, to.Certified, to.Username, to.Password, to.Plaintext = o.TLS, false, o.Username, o.Password, o.Plaintext
}

// resolve returns what looks a target's name up before each connection: passwords go to the
// addresses alone that they are for. Of several addresses each has its turn.
func (c *Config) resolve() func(context.Context, *collector.Config) error {
	turn := 0
	return func(ctx context.Context, to *collector.Config) error {
		host, port, err := net.SplitHostPort(to.Address)
		if err != nil {
			return err
		}
		all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return err
		}
		a := all[turn%len(all)].Unmap()
		turn++
		if o := c.other(a); o != nil {
			o.reach(to)
			to.Address = net.JoinHostPort(a.String(), port)
			if o.TLS != nil && o.TLS.ServerName == "" {
				to.TLS = o.TLS.Clone()
				to.TLS.ServerName = host
			}
		}
		return nil
	}
}
