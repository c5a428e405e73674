package agentd

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/neighbor"
	"github.com/tributary-fabric/tributary/internal/driver/lldp"
	"github.com/tributary-fabric/tributary/internal/driver/metrics"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/wire/lldpdu"
)

// LLDP is how a switch takes part in LLDP.
type LLDP struct {
	Interfaces nic.Source   // of the switch's ports; nil: those of the system
	Include    []string     // see lldp.Config
	Exclude    []string     // see lldp.Config
	Management []netip.Addr // addresses of the agent; none: that of Listen, or, where it is unspecified, of each port
	Interval   time.Duration

	// Required makes it an error that the agent may not. Otherwise it goes without, and
	// logs that; and an agent on a loopback address, which nobody else can reach,
	// announces nothing.
	Required bool
}

// announce begins to take part in LLDP, once the server has its address.
func (d *Daemon) announce() error {
	c := d.cfg.LLDP
	if c == nil || d.cfg.Elsewhere { // the switch's ports are not here
		return nil
	}
	at, err := netip.ParseAddrPort(d.Addr())
	if err != nil {
		return fmt.Errorf("agentd: switch %s: LLDP: %w", d.cfg.Switch, err)
	}
	if at.Addr().IsLoopback() && len(c.Management) == 0 && !c.Required {
		return nil
	}
	own := c.config(d.cfg.Switch, at)
	switch {
	case d.network != nil:
		own.Number = d.network.number
		if len(own.Include) == 0 {
			own.Include = d.network.interfaces() // others, such as bmv2's loop, are none of the switch's ports
		}
	case d.cfg.Target != nil && len(own.Include) == 0 && !c.Required:
		return nil // its ports are not interfaces of this machine
	}
	own.Changed, own.Log = d.telemetry.Changed, d.log
	s, err := lldp.Start(own)
	switch {
	case err == nil:
		d.neighbors = s
	case c.Required:
		return fmt.Errorf("agentd: switch %s: %w", d.cfg.Switch, err)
	default:
		d.log.Warn("neighbours are not known: LLDP is neither sent nor heard", slog.Any("reason", err))
	}
	return nil
}

// config returns what a switch announces whose agent is at an address.
func (c *LLDP) config(name string, at netip.AddrPort) lldp.Config {
	return lldp.Config{
		Interfaces: c.Interfaces, Include: c.Include, Exclude: c.Exclude, Interval: c.Interval,
		Own: lldpdu.Announcement{
			Capabilities: lldpdu.Bridge | lldpdu.Router, Enabled: lldpdu.Bridge | lldpdu.Router, Management: c.management(at.Addr()),
			Tributary: lldpdu.Tributary{Role: lldpdu.Switch, Name: name, AgentPort: at.Port()},
		},
	}
}

// validate reports what is wrong with c, which may be nil.
func (c *LLDP) validate(name string) error {
	if c == nil {
		return nil
	}
	return c.config(name, netip.AddrPort{}).Validate()
}

// management returns the addresses that all ports announce; none: each its own.
func (c *LLDP) management(listens netip.Addr) []netip.Addr {
	if len(c.Management) > 0 || !listens.IsValid() || listens.IsUnspecified() {
		return c.Management
	}
	return []netip.Addr{listens.Unmap()}
}

var (
	descNeighbors = metricSet.New("lldp_neighbors", "Neighbours that the ports hear by LLDP.")
	descFrames    = metricSet.New("lldp_frames_total", "LLDPDUs, by direction.", "direction")
	descDiscards  = metricSet.New("lldp_discards_total", "LLDPDUs, and parts of them, that were discarded, by reason.", "reason")
)

// collectNeighbors gives the metrics of LLDP, over all ports that there are: zeros where the
// agent takes no part in it.
func (d *Daemon) collectNeighbors(ctx context.Context, to metrics.Values) {
	var sum neighbor.Counters
	count := 0
	if s := d.neighbors; s != nil {
		all, err := s.Counters(ctx)
		if err != nil {
			to.Failed(descNeighbors, err)
			return
		}
		for _, c := range all {
			sum.Add(&c)
		}
		for _, p := range s.Ports() {
			count += len(p.Neighbors)
		}
	}
	to.Count(descNeighbors, count)
	to.Directions(descFrames, sum.Heard, sum.Announced)
	for reason, n := range sum.Discards() {
		to.Counter(descDiscards, n, reason)
	}
}
