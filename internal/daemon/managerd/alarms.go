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
	found  atomic.Uint64 // since the manager was started
	forged atomic.Uint64 // packets, likewise

	mu       sync.Mutex
	standing map[string][]alarm // by the switch at whose end it was counted
}

// alarm is a mismatch that holds.
type alarm struct {
	linkaudit.Mismatch
	since time.Time
}

func (a *alarm) same(m *linkaudit.Mismatch) bool {
	return a.Port == m.Port && a.Direction == m.Direction
}

// set makes those of a switch the ones that hold, and returns those that do so
// no more.
func (a *alarms) set(at string, now []linkaudit.Mismatch, when time.Time) (over []linkaudit.Mismatch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.standing[at]
	for _, old := range before {
		if !slices.ContainsFunc(now, func(m linkaudit.Mismatch) bool { return old.same(&m) }) {
			over = append(over, old.Mismatch)
		}
	}
	var all []alarm
	for _, m := range now {
		since := when
		if i := slices.IndexFunc(before, func(old alarm) bool { return old.same(&m) }); i >= 0 {
			since = before[i].since
		}
		all = append(all, alarm{m, since})
	}
	if a.standing == nil {
		a.standing = map[string][]alarm{}
	}
	if a.standing[at] = all; len(all) == 0 {
		delete(a.standing, at)
	}
	return over
}

// mismatches returns all that hold, by switch and port.
func (d *Daemon) mismatches(g *topology.Graph) (all []rpc.LinkMismatch) {
	d.alarms.mu.Lock()
	defer d.alarms.mu.Unlock()
	for _, n := range slices.Sorted(maps.Keys(d.alarms.standing)) {
		for _, a := range d.alarms.standing[n] {
			all = append(all, name(g, n, &a.Mismatch, a.since))
		}
	}
	return all
}
