package agentd

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/arp"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/pipeline"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/portmap"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/p4"
)

// network keeps the ports and routes of a P4 target as interfaces, neighbours and the
// manager have them.
type network struct {
	cfg    *Config
	log    *slog.Logger
	plane  *pipeline.Plane
	arp    *arp.Service  // nil: no next hop is found by itself
	stir   chan struct{} // has room for one
	looked sync.Mutex    // orders what is read of interfaces and given to the plane

	mu       sync.Mutex
	assigned portmap.Assignment
	deaf     bool          // nothing arrives at any port
	lost     []portmap.Hop // whose hardware address is not known
	used     chan struct{} // closed when the target gets other routes
	problems string        // as logged last
	silent   string        // next hops, as logged last
}

// discovers reports whether ports of the target are interfaces of this machine.
func (c *Config) discovers() bool {
	return c.Target != nil && slices.ContainsFunc(c.Ports, func(s portmap.Spec) bool { return s.Interface != "" })
}

// startNetwork begins to look for the target's ports; nil where all is in the
// configuration.
func (d *Daemon) startNetwork() *network {
	plane, p4 := d.plane.(*pipeline.Plane)
	if !p4 || !d.cfg.discovers() {
		return nil
	}
	n := &network{cfg: &d.cfg, log: d.log, plane: plane, stir: make(chan struct{}, 1), used: make(chan struct{})}
	if d.cfg.Elsewhere {
		return n
	}
	var err error
	n.arp, err = arp.Start(d.log, n.stirred)
	if err != nil {
		d.log.Warn("next hops are not found by ARP: every route has to be in the file", slog.Any("error", err))
	}
	return n
}

// interfaces returns the names, or patterns of names, of the interfaces that are ports.
func (n *network) interfaces() (all []string) {
	for _, s := range n.cfg.Ports {
		if s.Interface != "" {
			all = append(all, s.Interface)
		}
	}
	return all
}

// stirred has run look again.
func (n *network) stirred() {
	select {
	case n.stir <- struct{}{}:
	default: // it is about to
	}
}

// hears takes whether anything arrives at the target's ports.
func (n *network) hears(any bool) {
	n.mu.Lock()
	changed := n.deaf == any
	n.deaf = !any
	n.mu.Unlock()
	if changed {
		n.stirred()
	}
}

// run looks again whenever a neighbour is found, or the target hears again or no longer.
func (n *network) run(ctx context.Context, changed func(context.Context)) {
	for {
		select {
		case <-n.stir:
			changed(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func (n *network) end() {
	if n.arp != nil {
		n.arp.Close()
	}
}

// of returns the network that these interfaces make.
func (n *network) of(all []nic.Interface) portmap.Network {
	n.mu.Lock()
	assigned := n.assigned
	n.mu.Unlock()
	return portmap.Of(portmap.Known{
		Specs: n.cfg.Ports, Routes: n.cfg.Routes, Interfaces: all, Assigned: assigned, MAC: n.mac,
	})
}

// number returns the target's number of the port that is an interface; 0: it is none.
func (n *network) number(i nic.Interface) uint32 {
	for _, p := range n.of([]nic.Interface{i}).Ports {
		if p.Interface == i.Name {
			return uint32(p.Number)
		}
	}
	return 0
}

func (n *network) mac(port string, next netip.Addr) (p4.MAC, bool) {
	if n.arp == nil {
		return p4.MAC{}, false
	}
	m, known := n.arp.MAC(arp.Neighbour{Interface: port, Addr: next})
	return p4.MAC(m), known
}

// use gives the target its ports and routes, and looks for the next hops.
func (n *network) use(all []nic.Interface) {
	now := n.of(all)
	n.plane.Network(now.Addressed(), now.Routes)
	n.plane.SetDown(now.SetDown(all))
	if n.arp != nil {
		var ports []arp.Port
		for _, p := range now.Ports {
			if i := slices.IndexFunc(all, func(i nic.Interface) bool { return i.Name == p.Interface }); i >= 0 {
				ports = append(ports, arp.Port{Interface: p.Interface, Index: all[i].Index, Addr: p.Addr, MAC: arp.MAC(p.MAC)})
			}
		}
		var neighbours []arp.Neighbour
		for _, h := range now.Hops {
			neighbours = append(neighbours, arp.Neighbour{Interface: h.Port.Interface, Addr: h.Addr})
		}
		n.arp.Set(ports, neighbours)
	}
	n.mu.Lock()
	n.lost = slices.DeleteFunc(now.Hops, func(h portmap.Hop) bool { return h.Known || n.arp == nil })
	close(n.used)
	n.used = make(chan struct{})
	n.mu.Unlock()
	n.report(now.Problems)
}

// report logs what is wrong with the ports, and which next hops are not known yet, if
// that has changed.
func (n *network) report(problems []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if text := strings.Join(problems, "; "); text != n.problems {
		n.problems = text
		if text != "" {
			n.log.Warn("ports or routes of the P4 target are left out", slog.String("reason", text))
		}
	}
	var silent []string
	for _, h := range n.lost {
		silent = append(silent, fmt.Sprintf("%v on port %d", h.Addr, h.Port.Number))
	}
	if text := strings.Join(silent, ", "); text != n.silent {
		n.silent = text
		if text != "" {
			n.log.Info("nothing is routed by next hops that do not answer ARP yet", slog.String("hops", text))
		} else {
			n.log.Info("all next hops of the P4 target are known")
		}
	}
}

// SetRoutes implements rpc.Agent.
func (d *Daemon) SetRoutes(ctx context.Context, a portmap.Assignment) error {
	n := d.network
	if n == nil {
		return nil // all is in the configuration, or the system's
	}
	n.mu.Lock()
	n.assigned = a
	n.mu.Unlock()
	before := n.missing()
	d.changed(ctx)
	ctx, cancel := context.WithTimeout(ctx, hopsWait)
	defer cancel()
	for { // trees that come next need them
		found := n.found()
		if !fresh(before, n.missing()) {
			return nil
		}
		select {
		case <-found:
		case <-ctx.Done():
			return nil
		}
	}
}

// hopsWait is how long an agent waits for next hops that are new to it.
const hopsWait = 500 * time.Millisecond

// fresh reports whether a next hop is missing that was not before.
func fresh(before, now []portmap.Hop) bool {
	return slices.ContainsFunc(now, func(h portmap.Hop) bool {
		return !slices.ContainsFunc(before, func(b portmap.Hop) bool { return b.Addr == h.Addr })
	})
}

// missing returns the next hops that were not known when the target got its routes.
func (n *network) missing() []portmap.Hop {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lost
}

// found returns a channel that is closed when the target gets other routes.
func (n *network) found() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.used
}

// address gives those interfaces that are ports of the target the ports' addresses,
// which the system need not have on them, and the state that the target leaves them.
func (n *network) address(all []nic.Interface) {
	deaf := n.isDeaf()
	for _, p := range n.of(all).Ports {
		i := slices.IndexFunc(all, func(i nic.Interface) bool { return i.Name == p.Interface })
		if i < 0 {
			continue
		}
		all[i].Up = all[i].Up && !deaf
		if p.Addr.IsValid() && !all[i].Has(p.Addr) {
			all[i].Addresses, all[i].Bits = []netip.Addr{p.Addr}, nil
		}
	}
}

func (n *network) isDeaf() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.deaf
}

// seen returns the interfaces as managers see them: those of a target's ports with the
// ports' addresses, and the state that the target leaves them.
func (n *network) seen(all []nic.Interface) *rpc.Interfaces {
	now := n.of(all)
	if len(now.Addressed()) == 0 { // none is down for that
		return &rpc.Interfaces{Unavailable: pipeline.ErrNoPorts.Error()}
	}
	list := now.Seen(all)
	if n.isDeaf() {
		for i := range list {
			list[i].Up = false
		}
	}
	return &rpc.Interfaces{List: list}
}
