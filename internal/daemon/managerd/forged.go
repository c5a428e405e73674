package managerd

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/topology"
)

// forgedRate is how many forged packets a second, in the name of one neighbour of a tree, raise an
// alarm. Single ones are late packets of a tree whose address another one has now.
const forgedRate = 10

// treeEdge is a neighbour of a switch in an epoch: a child by its index, or the parent.
type treeEdge struct {
	group, epoch uint32
	child        int // parent: -1
}

// forgeries are the packets of other cookies, or without a right tag, of one switch, by the neighbour
// whose address they use.
type forgeries struct {
	at       time.Time
	counted  map[treeEdge]uint64
	standing map[treeEdge]bool
}

// forgery is an alarm that begins or is over.
type forgery struct {
	treeEdge
	name   string        // of the group
	port   topology.Port // by which the neighbour is reached
	rate   float64       // a second
	isOver bool
}

// take takes counters, and returns the alarms that begin or are over, and how many packets are new.
func (f *forgeries) take(now time.Time, sites []manager.SiteState, epochs []rpc.EpochTraffic) (alarms []forgery, fresh uint64) {
	counted, standing := map[treeEdge]uint64{}, map[treeEdge]bool{}
	past := max(now.Sub(f.at), 100*time.Millisecond).Seconds()
	for i := range epochs {
		e := &epochs[i]
		at := slices.IndexFunc(sites, func(s manager.SiteState) bool { return s.Group == e.Group && s.Epoch == e.Epoch })
		look := func(child int, n uint64) {
			edge := treeEdge{e.Group, e.Epoch, child}
			counted[edge] = n
			if f.at.IsZero() { // what was before this connection may have been counted
				return
			}
			if n < f.counted[edge] { // the agent has started again
				f.counted[edge] = 0
			}
			more := n - f.counted[edge]
			fresh += more
			rate := float64(more) / past
			standing[edge] = rate >= forgedRate
			if standing[edge] == f.standing[edge] {
				return
			}
			a := forgery{treeEdge: edge, rate: rate, isOver: !standing[edge]}
			if at >= 0 {
				s := &sites[at]
				if a.name = s.Name; child < 0 {
					a.port = s.Up
				} else if child < len(s.Children) {
					a.port = s.Children[child]
				}
			}
			alarms = append(alarms, a)
		}
		for child := range e.Children {
			look(child, e.Children[child].Forged)
		}
		if e.Parent != nil {
			look(-1, e.Parent.Forged)
		}
	}
	for edge := range f.standing {
		if _, isThere := counted[edge]; !isThere { // its tree is gone
			alarms = append(alarms, forgery{treeEdge: edge, isOver: true})
		}
	}
	f.at, f.counted, f.standing = now, counted, standing
	maps.DeleteFunc(f.standing, func(_ treeEdge, is bool) bool { return !is })
	return alarms, fresh
}

// forged looks for packets that somebody sends in a neighbour's name.
func (l *link) forged(f *forgeries, sites []manager.SiteState, epochs []rpc.EpochTraffic, g *topology.Graph, n topology.NodeID) {
	alarms, fresh := f.take(time.Now(), sites, epochs)
	l.daemon.alarms.forged.Add(fresh)
	for i := range alarms {
		a := &alarms[i]
		link := "?"
		if over, ok := g.LinkAt(n, a.port); ok {
			link = g.LinkName(over)
		}
		args := []any{
			slog.String("link", link), slog.Uint64("group", uint64(a.group)), slog.String("name", a.name),
			slog.Uint64("epoch", uint64(a.epoch)), slog.Int("child", a.child), slog.Float64("packets a second", a.rate),
		}
		if a.isOver {
			l.log.Info("no more packets are forged in a neighbour's name", args...)
		} else {
			l.log.Error("packets are forged in a neighbour's name: they use its address, and lack its cookie or tag", args...)
		}
	}
}
