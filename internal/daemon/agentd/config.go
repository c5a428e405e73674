package agentd

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/dataplane/pipeline"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/portmap"
	"github.com/tributary-fabric/tributary/internal/driver/lldp"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/driver/processor"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/p4"
	"github.com/tributary-fabric/tributary/topology"
)

// ErrConfig is wrapped by the errors of Config.Validate.
var ErrConfig = errors.New("agentd: invalid configuration")

// Kernel says whether a switch's kernel reduces packets of trees before the agent has them.
type Kernel uint8

// The uses of a kernel.
const (
	NoKernel    Kernel = iota // the agent reduces by itself
	AnyKernel                 // the kernel reduces if it can: otherwise the agent does, and logs why
	NeedsKernel               // the agent does not start without it
)

// Config is what an agent is and where it can be reached.
type Config struct {
	Switch     string              // name of the switch in the topology
	Capability topology.Capability // what it can do; with a Target at most pipeline.Limits

	Listen string // "host:port" of the gRPC server; port 0 takes a free one
	// Trust is the agent's certificate, which has to name it as agent of the
	// switch. Without one, everything is on loopback addresses, unless
	// AllowPlaintext is set.
	Trust          *pki.Source
	AllowPlaintext bool
	Limits         rpc.Limits // of that server; zero fields have their defaults

	PrepareLease time.Duration // life of a reservation that is never committed; 0: the core's default

	// Target is a P4 target that reduces. nil: the agent reduces by itself.
	Target *pipeline.Target

	// Kernel is whether, without a Target, the switch's kernel reduces what it can.
	Kernel Kernel

	// Ports are those of the Target that are interfaces of this machine, beside its
	// own: what these do not say comes from the interface, and addresses and routes
	// that nobody says here from the manager.
	Ports  []portmap.Spec
	Routes []p4.Route // by hand, by ports of Ports

	// Data is, without a Target, the address of the trees' sockets, which take
	// free ports. The unspecified one takes packets at all addresses of the
	// switch: neighbours in a tree then use the address that the topology has on
	// their link.
	Data          netip.Addr
	ReceiveBuffer int                // of each of them, in bytes; 0: soft.DefaultReceiveBuffer
	Without       transport.Features // that they are to do without

	// Interfaces are those of the switch, of a Target's those of Ports: they are
	// reported to the manager, so that it sees a link go down, and whether links carry
	// the trees. nil: of Ports those of the system; otherwise none are reported.
	Interfaces nic.Source
	// Elsewhere reports that these are another machine's, which does not report what
	// they have carried: next hops are not found by ARP, and links not audited.
	Elsewhere bool
	// LLDP is how the switch takes part in LLDP. nil: it does not.
	LLDP *LLDP
	// Processor returns what the switch's CPU has spent, which the manager's plans may
	// count: processor.Read. nil: that is not reported.
	Processor func() (processor.Time, error)

	// Measure has the switch's speed measured, unless Capability has it, or a Target
	// reduces.
	Measure bool

	// Faults are for trials without a Target: what the trees' sockets do to the
	// packets that they send. Each socket of each switch has a seed of its own, derived from
	// Faults.Seed.
	Faults transport.Faults

	Log *slog.Logger // nil: none
}

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	switch {
	case c.Switch == "":
		return fmt.Errorf("%w: no switch name", ErrConfig)
	case c.Listen == "":
		return fmt.Errorf("%w: switch %s: no address to listen on", ErrConfig, c.Switch)
	case c.PrepareLease < 0:
		return fmt.Errorf("%w: switch %s: prepare lease of %v", ErrConfig, c.Switch, c.PrepareLease)
	}
	for _, err := range []error{c.Capability.Validate(), c.planeConfigured(), c.trusted(), c.LLDP.validate(c.Switch)} {
		if err != nil {
			return fmt.Errorf("%w: switch %s: %w", ErrConfig, c.Switch, err)
		}
	}
	return nil
}

// Check reports what is wrong with c on this machine: what Validate does, and
// addresses that Start could not listen on, whoever has their ports.
func (c Config) Check() error {
	if err := c.Validate(); err != nil {
		return err
	}
	if err := rpc.CheckListen(c.Listen, c.server()); err != nil {
		return fmt.Errorf("agentd: switch %s: %w", c.Switch, err)
	}
	return c.checkData()
}

// CheckRights reports what Start would refuse because a process with the rights of this one
// may not do it.
func (c Config) CheckRights() error {
	if c.LLDP == nil || !c.LLDP.Required || c.Elsewhere {
		return nil
	}
	if err := lldp.Permitted(); err != nil {
		return fmt.Errorf("agentd: switch %s: %w", c.Switch, err)
	}
	return nil
}

// checkData reports a data address that the trees' sockets could not have.
func (c Config) checkData() error {
	if c.Target != nil {
		return nil // it has them
	}
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(c.Data, 0)))
	if err != nil {
		return fmt.Errorf("agentd: switch %s: data address %v: %w", c.Switch, c.Data, err)
	}
	return conn.Close()
}

// trusted reports what is wrong with the certificate, or with its absence.
func (c Config) trusted() error {
	if c.Trust != nil {
		return c.Trust.Expect(pki.Want{Role: pki.Agent, Name: c.Switch})
	}
	for _, a := range c.addresses() {
		if err := c.server().CheckAddress(a.AsSlice()); err != nil {
			return fmt.Errorf("data address %v: %w", a, err)
		}
	}
	return nil
}

// server reports how to serve.
func (c Config) server() rpc.ServerConfig {
	s := rpc.ServerConfig{AllowPlaintext: c.AllowPlaintext, Limits: c.Limits, Log: c.Log}
	if c.Trust != nil {
		s.TLS, s.Trust = c.Trust.Server(), c.Trust
	}
	return s
}
