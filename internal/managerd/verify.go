package managerd

import (
	"context"
	"log/slog"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/aggregate"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/placement"
	"github.com/tributary-fabric/tributary/internal/rpc"
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
	defer l.daemon.alarms.set(l.node, nil, time.Time{})
	var auditor placement.Auditor
	for {
		if err := l.audit(ctx, &auditor); err != nil && ctx.Err() == nil {
			l.log.Warn("the counters of the switch cannot be had", slog.Any("error", err))
		}
		if !pause(ctx, period) {
			return
		}
	}
}

// audit asks for the counters once. An agent that does not tell its interfaces
// is believed.
func (l *link) audit(ctx context.Context, auditor *placement.Auditor) error {
	ctx, cancel := context.WithTimeout(ctx, l.daemon.cfg.Call)
	defer cancel()
	counters, err := l.client.Counters(ctx)
	if err != nil {
		return err
	}
	var sites []manager.SiteState
	if err := l.daemon.loop.Do(ctx, func() { sites = l.daemon.core.Sites(l.node) }); err != nil {
		return err
	}
	found := auditor.Take(l.carried(counters.Interfaces), flows(sites, counters.Epochs))
	names := map[uint32]string{}
	for _, s := range sites {
		names[s.Group] = s.Name
	}
	for i := range found {
		l.alarm(&found[i], names)
	}
	l.daemon.alarms.found.Add(uint64(len(found)))
	for _, m := range l.daemon.alarms.set(l.node, auditor.Standing(), time.Now()) {
		l.log.Info("link carries its trees again, or has none of them any more", slog.String("link", l.daemon.cfg.Topology.LinkName(m.Link)))
	}
	return nil
}

// carried returns what the interfaces at the switch's ends of links carried.
// What is down is left out: nothing is expected of it.
func (l *link) carried(x *rpc.Interfaces) (all []placement.Port) {
	if x == nil {
		return nil
	}
	view := l.daemon.view()
	for id, i := range ports(view.Graph(), l.node, x.List) {
		if i.Up && view.LinkUp(id) {
			all = append(all, placement.Port{
				Link: id, Interface: i.Name, Count: placement.Count{In: i.Traffic.BytesIn, Out: i.Traffic.BytesOut},
			})
		}
	}
	return all
}

// flows returns what the epochs that are known have exchanged over each of
// their links.
func flows(sites []manager.SiteState, epochs []rpc.EpochTraffic) (all []placement.Flow) {
	type key struct{ group, epoch uint32 }
	known := make(map[key]*manager.SiteState, len(sites))
	for i := range sites {
		known[key{sites[i].Group, sites[i].Epoch}] = &sites[i]
	}
	for i := range epochs {
		e := &epochs[i]
		s := known[key{e.Group, e.Epoch}]
		if s == nil || e.Tree != 0 || len(e.Children) != len(s.Children) {
			continue
		}
		over := func(l topology.LinkID, t aggregate.Traffic) {
			all = append(all, placement.Flow{
				Group: e.Group, Epoch: e.Epoch, Link: l, Count: placement.Count{In: t.BytesIn, Out: t.BytesOut},
				Window: uint64(s.Window) * uint64(s.ChunkBytes+wire.HeaderSize),
			})
		}
		for child, t := range e.Children {
			over(s.Children[child], t)
		}
		if e.Parent != nil && s.Up != topology.NoLink {
			over(s.Up, *e.Parent)
		}
	}
	return all
}

// alarm logs a mismatch, once for each of its trees.
func (l *link) alarm(m *placement.Mismatch, names map[uint32]string) {
	x := l.daemon.name(l.node, m, time.Time{})
	for _, t := range m.Trees {
		l.log.Error("tree is not where it was planned", slog.String("link", x.Link), slog.String("interface", x.Interface),
			slog.String("direction", x.Direction()), slog.Uint64("expected", x.Expected), slog.Uint64("seen", x.Seen),
			slog.Uint64("group", uint64(t.Group)), slog.String("name", names[t.Group]), slog.Uint64("epoch", uint64(t.Epoch)),
			slog.Uint64("bytes", t.Bytes))
	}
}

// name returns a mismatch with names in place of numbers.
func (d *Daemon) name(n topology.NodeID, m *placement.Mismatch, since time.Time) rpc.LinkMismatch {
	g := d.cfg.Topology
	x := rpc.LinkMismatch{
		Link: g.LinkName(m.Link), Switch: g.Name(n), Interface: m.Interface, Sent: m.Direction == placement.Sent,
		Expected: m.Expected, Seen: m.Seen, Since: since,
	}
	for _, t := range m.Trees {
		x.Trees = append(x.Trees, rpc.TreeShare{Group: t.Group, Epoch: t.Epoch, Bytes: t.Bytes})
	}
	return x
}
