package hostlib

import (
	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// subcommunicator is what a communicator is to another one that it serves as one of
// its trees.
type subcommunicator struct {
	of      *Communicator  // nil: it serves none
	ranks   []int          // in the other, by rank here; nil: they are the same
	bundle  manager.Bundle // of its group at the manager
	onHosts bool           // it has no such group
	leads   *processes     // it is the one of the lowest ranks of hosts
	radix   int            // of its tree of hosts; 0: as that of any
}

// notify has the other communicator end as c has, if it does not find that out by
// itself: it compares all operations, but those of leaders, and whoever gives c up gives both up.
func (n *subcommunicator) notify(c *Communicator, f *wire.Fail) {
	if n.of == nil || f.Kind == wire.FailCalls || f.Kind == wire.FailCancel || f.Kind == wire.FailDisagree && n.leads == nil {
		return
	}
	reported := *f
	if n.leads != nil {
		reported = n.leads.translate(reported)
	}
	if int(f.Rank) < len(n.ranks) {
		reported.Rank = uint32(n.ranks[f.Rank])
	}
	// Not from here: both loops may be waiting for room in the other's queue.
	c.tasks.Go(func() { n.of.news(endpoint.Failed, endpoint.News{Fail: reported}) })
}

// bundle returns which of several groups of the manager's c's is.
func (c *Communicator) bundle() manager.Bundle {
	if n := c.options.mostStripes(); (c.sub.of == nil || c.sub.leads != nil) && n > 1 {
		return manager.Bundle{Name: groupName(c.name, c.own), Kind: manager.Stripes, Count: n, PerRail: c.options.stripes == PerRail}
	}
	return c.sub.bundle
}
