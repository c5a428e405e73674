package managerd

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/linkaudit"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/topology"
)

// alarms are the links that do not carry what trees say. Its zero value has
// none.
type alarms struct {
	found atomic.Uint64 // since the manager was started

	mu       sync.Mutex
	standing map[topology.NodeID][]alarm // by the switch at whose end it was counted
}

// alarm is a mismatch that holds.
type alarm struct {
	linkaudit.Mismatch
	since time.Time
}

func (a *alarm) same(m *linkaudit.Mismatch) bool {
	return a.Link == m.Link && a.Direction == m.Direction
}

// set makes those of switch n the ones that hold, and returns those that do so
// no more.
func (a *alarms) set(n topology.NodeID, now []linkaudit.Mismatch, at time.Time) (over []linkaudit.Mismatch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.standing[n]
	for _, old := range before {
		if !slices.ContainsFunc(now, func(m linkaudit.Mismatch) bool { return old.same(&m) }) {
			over = append(over, old.Mismatch)
		}
	}
	var all []alarm
	for _, m := range now {
		since := at
		if i := slices.IndexFunc(before, func(old alarm) bool { return old.same(&m) }); i >= 0 {
			since = before[i].since
		}
		all = append(all, alarm{m, since})
	}
	if a.standing == nil {
		a.standing = map[topology.NodeID][]alarm{}
	}
	a.standing[n] = all
	return over
}

// mismatches returns all that hold, by switch and link.
func (d *Daemon) mismatches() (links []topology.LinkID, all []rpc.LinkMismatch) {
	d.alarms.mu.Lock()
	defer d.alarms.mu.Unlock()
	for _, n := range slices.Sorted(maps.Keys(d.alarms.standing)) {
		for _, a := range d.alarms.standing[n] {
			links = append(links, a.Link)
			all = append(all, d.name(n, &a.Mismatch, a.since))
		}
	}
	return links, all
}
