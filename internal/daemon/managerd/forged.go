package managerd

import (
	"log/slog"
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
	standing map[treeEdge]bool // that raise an alarm
}

// forgery is an alarm that begins or is over.
type forgery struct {
	treeEdge
	name   string        // of the group
	port   topology.Port // by which the neighbour is reached
	rate   float64       // a second
	isOver bool
}

// take takes counters, and returns the alarms that begin or are over, and how many packets are new. The
// first time there are none: what was before this connection may have been counted.
func (f *forgeries) take(now time.Time, known map[epochKey]*manager.SiteState, epochs []rpc.EpochTraffic) (alarms []forgery, fresh uint64) {
	isFirst, past := f.at.IsZero(), max(now.Sub(f.at), 100*time.Millisecond).Seconds()
	next := forgeries{at: now, counted: map[treeEdge]uint64{}, standing: map[treeEdge]bool{}}
	for i := range epochs {
		e := &epochs[i]
		look := func(child int, n uint64) {
			edge := treeEdge{e.Group, e.Epoch, child}
			next.counted[edge] = n
			if isFirst {
				return
			}
			more := n
			if before := f.counted[edge]; n >= before { // else the agent has started again
				more -= before
			}
			fresh += more
			rate := float64(more) / past
			stands := rate >= forgedRate
			if stands {
				next.standing[edge] = true
			}
			if stands != f.standing[edge] {
				a := forgery{treeEdge: edge, rate: rate, isOver: !stands}
				a.locate(known[epochKey{e.Group, e.Epoch}])
				alarms = append(alarms, a)
			}
		}
		for child := range e.Children {
			look(child, e.Children[child].Forged)
		}
		if e.Parent != nil {
			look(-1, e.Parent.Forged)
		}
	}
	for edge := range f.standing {
		if _, isThere := next.counted[edge]; !isThere { // its tree is gone
			alarms = append(alarms, forgery{treeEdge: edge, isOver: true})
		}
	}
	*f = next
	return alarms, fresh
}

// locate adds group and port, if the tree is known.
func (a *forgery) locate(s *manager.SiteState) {
	switch {
	case s == nil:
		return
	case a.child < 0:
		a.port = s.Up
	case a.child < len(s.Children):
		a.port = s.Children[a.child]
	}
	a.name = s.Name
}

// forged looks for packets that somebody sends in a neighbour's name.
func (l *link) forged(f *forgeries, known map[epochKey]*manager.SiteState, epochs []rpc.EpochTraffic, g *topology.Graph) {
	alarms, fresh := f.take(time.Now(), known, epochs)
	l.daemon.alarms.forged.Add(fresh)
	for i := range alarms {
		a := &alarms[i]
		args := []any{
			slog.String("link", linkAt(g, l.name, a.port)), slog.Uint64("group", uint64(a.group)), slog.String("name", a.name),
			slog.Uint64("epoch", uint64(a.epoch)), slog.Int("child", a.child), slog.Float64("packets a second", a.rate),
		}
		if a.isOver {
			l.log.Info("no more packets are forged in a neighbour's name", args...)
		} else {
			l.log.Error("packets are forged in a neighbour's name: they use its address, and lack its cookie or tag", args...)
		}
	}
}
