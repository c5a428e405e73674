package managerd

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/linkaudit"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/topology"
)

// verify holds, again and again until the context ends, what the trees on the
// switch say that they have exchanged over its links against what the
// interfaces there have carried. It is of one life of the connection.
func (l *link) verify(ctx context.Context) {
	period := l.daemon.cfg.Verify
	if period < 0 {
		return
	}
	defer l.daemon.alarms.set(l.name, nil, time.Time{})
	defer l.daemon.usedAt(l.name, usage{}) // not known any longer
	var auditor linkaudit.Auditor
	var meter meter
	var forgeries forgeries
	for {
		if err := l.audit(ctx, &auditor, &meter, &forgeries); err != nil && ctx.Err() == nil {
			l.log.Warn("the counters of the switch cannot be had", slog.Any("error", err))
		}
		if runner.Pause(ctx, period) != nil {
			return
		}
	}
}

// audit asks for the counters once. An agent that does not report its interfaces
// is believed.
func (l *link) audit(ctx context.Context, auditor *linkaudit.Auditor, meter *meter, forgeries *forgeries) error {
	ctx, cancel := context.WithTimeout(ctx, l.daemon.cfg.Call)
	defer cancel()
	counters, err := l.client.Counters(ctx)
	if err != nil {
		return err
	}
	var sites []manager.SiteState
	if err := l.daemon.loop.Do(ctx, func() { sites = l.daemon.core.Sites(l.name) }); err != nil {
		return err
	}
	view := l.daemon.view()
	n, ok := view.Graph().Lookup(l.name)
	if !ok {
		return nil // it has left the fabric
	}
	known := byEpoch(sites)
	l.forged(forgeries, known, counters.Epochs, view.Graph())
	carried, exchanged := carried(view, n, counters.Interfaces), exchanges(known, counters.Epochs)
	l.daemon.usedAt(l.name, meter.take(time.Now(), view.Graph(), n, counters.CPU, carried, exchanged))
	found := auditor.Take(carried, flows(exchanged))
	names := map[uint32]string{}
	for _, s := range sites {
		names[s.Group] = s.Name
	}
	for i := range found {
		l.alarm(&found[i], names)
	}
	l.daemon.alarms.found.Add(uint64(len(found)))
	for _, m := range l.daemon.alarms.set(l.name, auditor.Standing(), time.Now()) {
		l.log.Info("link carries its trees again, or has none of them any more", slog.String("link", name(view.Graph(), l.name, &m, time.Time{}).Link))
	}
	return nil
}

// carried returns what the interfaces at the switch's ends of links carried.
// What is down is left out: nothing is expected of it.
func carried(view topology.View, n topology.NodeID, x *rpc.Interfaces) (all []linkaudit.Port) {
	if x == nil {
		return nil
	}
	for port, i := range ports(view.Graph(), n, x.List) {
		if l, ok := view.Graph().LinkAt(n, port); ok && i.Up && view.LinkUp(l) {
			all = append(all, linkaudit.Port{
				Port: port, Interface: i.Name, Count: linkaudit.Count{In: i.Traffic.BytesIn, Out: i.Traffic.BytesOut},
			})
		}
	}
	return all
}

// epochKey names an epoch of a group.
type epochKey struct{ group, epoch uint32 }

// byEpoch returns a switch's part in trees by their epochs.
func byEpoch(sites []manager.SiteState) map[epochKey]*manager.SiteState {
	known := make(map[epochKey]*manager.SiteState, len(sites))
	for i := range sites {
		known[epochKey{sites[i].Group, sites[i].Epoch}] = &sites[i]
	}
	return known
}

// exchange is what one epoch has exchanged over one link.
type exchange struct {
	site *manager.SiteState
	port topology.Port
	switchreduce.Traffic
}

// exchanges returns what the epochs that are known have exchanged, by epoch and
// link: where switches forward, several children may be beyond one link.
func exchanges(known map[epochKey]*manager.SiteState, epochs []rpc.EpochTraffic) (all []exchange) {
	for i := range epochs {
		e := &epochs[i]
		s := known[epochKey{e.Group, e.Epoch}]
		if s == nil || len(e.Children) != len(s.Children) {
			continue
		}
		first := len(all)
		over := func(port topology.Port, t switchreduce.Traffic) {
			for k := range all[first:] {
				if x := &all[first+k]; x.port == port {
					x.PacketsIn, x.BytesIn = x.PacketsIn+t.PacketsIn, x.BytesIn+t.BytesIn
					x.PacketsOut, x.BytesOut = x.PacketsOut+t.PacketsOut, x.BytesOut+t.BytesOut
					return
				}
			}
			if port != 0 {
				all = append(all, exchange{s, port, t})
			}
		}
		for child, t := range e.Children {
			over(s.Children[child], t)
		}
		if e.Parent != nil {
			over(s.Up, *e.Parent)
		}
	}
	return all
}

// flows returns exchanges as an auditor takes them.
func flows(all []exchange) []linkaudit.Flow {
	list := make([]linkaudit.Flow, len(all))
	for i, x := range all {
		s := x.site
		edges := 0 // over the link
		for _, port := range s.Children {
			if port == x.port {
				edges++
			}
		}
		list[i] = linkaudit.Flow{
			Group: s.Group, Epoch: s.Epoch, Port: x.port, Count: linkaudit.Count{In: x.BytesIn, Out: x.BytesOut},
			Window: uint64(max(edges, 1)) * uint64(s.Window) * uint64(s.ChunkBytes+wire.HeaderSize),
		}
	}
	return list
}

// alarm logs a mismatch, once for each of its trees.
func (l *link) alarm(m *linkaudit.Mismatch, names map[uint32]string) {
	x := name(l.daemon.view().Graph(), l.name, m, time.Time{})
	for _, t := range m.Trees {
		l.log.Error("tree is not where it was planned", slog.String("link", x.Link), slog.String("interface", x.Interface),
			slog.String("direction", x.Direction()), slog.Uint64("expected", x.Expected), slog.Uint64("seen", x.Seen),
			slog.Uint64("group", uint64(t.Group)), slog.String("name", names[t.Group]), slog.Uint64("epoch", uint64(t.Epoch)),
			slog.Uint64("bytes", t.Bytes))
	}
}

// linkAt returns the name of the link at a switch's port. One that the graph does not have any more
// is named by its end.
func linkAt(g *topology.Graph, at string, port topology.Port) string {
	if n, ok := g.Lookup(at); ok {
		if l, ok := g.LinkAt(n, port); ok {
			return g.LinkName(l)
		}
	}
	return fmt.Sprintf("%s:%d", at, port)
}

// name returns a mismatch at a switch with names in place of numbers.
func name(g *topology.Graph, at string, m *linkaudit.Mismatch, since time.Time) rpc.LinkMismatch {
	x := rpc.LinkMismatch{
		Link: linkAt(g, at, m.Port), Switch: at, Interface: m.Interface, Sent: m.Direction == linkaudit.Sent,
		Expected: m.Expected, Seen: m.Seen, Since: since,
	}
	for _, t := range m.Trees {
		x.Trees = append(x.Trees, rpc.TreeShare{Group: t.Group, Epoch: t.Epoch, Bytes: t.Bytes})
	}
	return x
}
