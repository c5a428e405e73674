package managerd

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tributary-fabric/tributary/hostlib/membership"
	"github.com/tributary-fabric/tributary/topology"
)

// zone is the manager's place among its hosts, if it has one. It is a high
// priority monitor there: whoever suspects a host tells the manager first.
type zone struct {
	node    *membership.Node
	watcher *membership.Watcher
}

// joinZone makes the manager a node of the zone of its hosts.
func (d *Daemon) joinZone() error {
	if d.cfg.Membership == nil {
		return nil
	}
	c := *d.cfg.Membership
	c.Monitor = true
	if c.Log == nil {
		c.Log = d.log
	}
	node, err := membership.Join(context.Background(), c)
	if err != nil {
		return fmt.Errorf("managerd: %w", err)
	}
	d.zone = &zone{node: node, watcher: node.Watcher()}
	return nil
}

// leaveZone ends what joinZone began. In order, the others are told.
func (d *Daemon) leaveZone(ordered bool) {
	if d.zone == nil {
		return
	}
	if ordered {
		ctx, cancel := context.WithTimeout(context.Background(), d.cfg.Call)
		defer cancel()
		if err := d.zone.node.Leave(ctx, 0); err != nil {
			d.log.Warn("leaving the zone", slog.Any("error", err))
		}
	}
	d.zone.node.Close()
}

// watchZone marks hosts in the topology as the zone sees them: down when they
// have died or left, up when they are there. A host that never was in the zone
// counts as up. It returns when the node has ended; hosts then stay as they are.
func (d *Daemon) watchZone() {
	for {
		notices, err := d.zone.watcher.Next(context.Background())
		if err != nil {
			if why := d.zone.node.Err(); why != nil {
				d.log.Warn("the zone does not tell any more who dies", slog.Any("error", why))
			}
			return
		}
		var changes []topology.Change
		for _, x := range notices {
			n, ok := d.cfg.Topology.Lookup(x.Member.Name)
			if !ok || d.cfg.Topology.IsSwitch(n) {
				continue // the manager itself, or a service beside the fabric
			}
			up := x.Kind == membership.Joined
			changes = append(changes, topology.NodeState(n, up))
			d.log.Info("host changed", slog.String("host", x.Member.Name), slog.Bool("up", up), slog.String("notice", x.String()))
		}
		if err := d.ChangeTopology(changes...); err != nil {
			return // the manager ends
		}
	}
}

// Pages returns what the manager serves at its admin address beside metrics: what it
// sees of its zone.
func (d *Daemon) Pages() map[string]http.Handler {
	if d.zone == nil {
		return nil
	}
	return map[string]http.Handler{membership.StatusPage: d.zone.node}
}

// ZoneCollectors returns the metrics of the manager's node in its zone, none if
// it has none.
func (d *Daemon) ZoneCollectors() []prometheus.Collector {
	if d.zone == nil {
		return nil
	}
	return []prometheus.Collector{d.zone.node.Collector()}
}
