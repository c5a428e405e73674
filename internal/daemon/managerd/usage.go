package managerd

import (
	"log/slog"
	"math"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/linkaudit"
	"github.com/tributary-fabric/tributary/internal/driver/processor"
	"github.com/tributary-fabric/tributary/topology"
)

// usage is how busy a switch's CPU and the ends of its links are, as shares from
// 0 to 1. The zero value is one of which nothing is known.
type usage struct {
	cpu     float64
	foreign map[topology.Port]float64 // by port: what is not of trees, in the busier direction
}

// meter measures it from one reading of the counters to the next. Its zero value
// has read nothing. It is of one life of the connection.
type meter struct {
	at     time.Time
	cpu    processor.Time
	ports  map[topology.Port]linkaudit.Count
	flows  map[flowKey]linkaudit.Count
	smooth usage
}

type flowKey struct {
	group, epoch uint32
	port         topology.Port
}

// frameHeaders are the bytes of a packet that an interface counts and a tree
// does not: Ethernet, IPv4 and UDP.
const frameHeaders = 14 + 20 + 8

// take takes a reading, and returns the usage, each share being half of what was
// before and half of what is new, so that a peak shorter than the time between
// readings does not count for much.
func (m *meter) take(now time.Time, g *topology.Graph, n topology.NodeID, cpu processor.Time, carried []linkaudit.Port, trees []exchange) usage {
	ports := make(map[topology.Port]linkaudit.Count, len(carried))
	for _, p := range carried {
		ports[p.Port] = p.Count
	}
	flows := make(map[flowKey]linkaudit.Count, len(trees))
	own := make(map[topology.Port]linkaudit.Count, len(trees)) // since the last reading
	for _, x := range trees {
		key := flowKey{x.site.Group, x.site.Epoch, x.port}
		flows[key] = linkaudit.Count{In: x.BytesIn + frameHeaders*x.PacketsIn, Out: x.BytesOut + frameHeaders*x.PacketsOut}
		sum, more := own[x.port], grown(m.flows[key], flows[key])
		own[x.port] = linkaudit.Count{In: sum.In + more.In, Out: sum.Out + more.Out}
	}
	next := usage{foreign: make(map[topology.Port]float64, len(ports))}
	if share, ok := cpu.Since(m.cpu); ok && m.cpu.Total > 0 {
		next.cpu = (m.smooth.cpu + share) / 2
	}
	for port, count := range ports {
		before, known := m.ports[port]
		l, there := g.LinkAt(n, port)
		took := now.Sub(m.at).Seconds()
		if !known || !there || took <= 0 {
			continue
		}
		all := grown(before, count)
		most := max(all.In-min(all.In, own[port].In), all.Out-min(all.Out, own[port].Out))
		share := min(float64(most)*8/took/float64(g.Link(l).Bandwidth), 1)
		next.foreign[port] = (m.smooth.foreign[port] + share) / 2
	}
	*m = meter{at: now, cpu: cpu, ports: ports, flows: flows, smooth: next}
	return next
}

// grown returns by how much a count has grown; where it began anew, it says
// nothing.
func grown(before, after linkaudit.Count) linkaudit.Count {
	if after.In < before.In || after.Out < before.Out {
		return linkaudit.Count{}
	}
	return linkaudit.Count{In: after.In - before.In, Out: after.Out - before.Out}
}

// step is what a share must have in common with the one that plans count: one
// that differs by less than three quarters of it is the same, so that plans do
// not waver with every reading.
const step = 1.0 / 8

// settled returns the share that plans are to count, when they count reported and is
// is measured: a multiple of step.
func settled(reported, is float64) float64 {
	if math.Abs(is-reported) < 0.75*step {
		return reported
	}
	return math.Round(is/step) * step
}

// usedAt says how busy a switch and its ends of links are; of links that are not
// reported nothing is known. A link is as busy as its busier end says.
func (d *Daemon) usedAt(name string, u usage) {
	d.fabric.Lock()
	defer d.fabric.Unlock()
	view := d.overlay.View()
	g := view.Graph()
	n, ok := g.Lookup(name)
	if !ok || !g.IsSwitch(n) {
		return // it has left the fabric
	}
	var changes []topology.Change
	if cpu := settled(view.NodeUtilization(n), u.cpu); cpu != view.NodeUtilization(n) {
		changes = append(changes, topology.NodeUtilization(n, cpu))
	}
	for _, l := range g.Adjacent(n) {
		port, across := g.PortAt(l, n), g.Across(l, n)
		here, there := g.EndName(topology.End{Node: n, Port: port}), g.EndName(topology.End{Node: across, Port: g.PortAt(l, across)})
		if delete(d.foreign, here); u.foreign[port] > 0 {
			d.foreign[here] = u.foreign[port]
		}
		if share := settled(view.LinkUtilization(l), max(d.foreign[here], d.foreign[there])); share != view.LinkUtilization(l) {
			changes = append(changes, topology.LinkUtilization(l, share))
		}
	}
	if len(changes) == 0 {
		return
	}
	d.log.Debug("plans count another usage", slog.String("switch", name), slog.Int("changes", len(changes)))
	// Shares are within their bounds; and that the manager ends, ends this, too.
	_ = d.change(nil, changes...)
}
