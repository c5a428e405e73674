package managerd_test

import (
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
)

// termIn returns the term in a store; 0: none.
func termIn(t *testing.T, s managerd.Store) uint64 {
	t.Helper()
	all, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Kind == manager.FleetRecord {
			return r.Fleet.Term
		}
	}
	return 0
}

// TestTerms: a manager's term is above those of all before it: by the store, where the
// clock was set back; by the clock, where the store was lost. Where both are, agents take
// it only after their restart.
func TestTerms(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	first := new(managerd.Memory)
	f := newFabric(t, func(c *managerd.Config, _ map[string]*agentd.Config) {
		c.Store, c.Now = first, func() time.Time { return at }
	})
	began := termIn(t, first)
	if began != uint64(at.UnixNano()) {
		t.Errorf("the first term is %d", began)
	}
	next := func(store *managerd.Memory, clock time.Time) {
		t.Helper()
		f.manager.Kill()
		f.cfg.Store, at = store, clock
		f.startManager()
	}
	next(first, time.Unix(10, 0))
	f.connected()
	if is := termIn(t, first); is != began+1 {
		t.Errorf("the second term is %d, want %d", is, began+1)
	}
	g := f.newGroup(f.spec("job")) // which stores the fleet again
	g.offers(0)
	if is := termIn(t, first); is != began+1 {
		t.Errorf("the store has term %d, want %d", is, began+1)
	}
	wiped := new(managerd.Memory)
	next(wiped, time.Unix(2_000_000, 0))
	f.connected()

	next(new(managerd.Memory), time.Unix(20, 0)) // both are lost
	for name := range f.agents {
		if s, err := f.switchState(testContext(t), name); err != nil || s.Connected {
			t.Errorf("switch %s has a manager of an earlier term: %v", name, err)
		}
		f.agents[name].Kill()
		f.restartAgent(name)
	}
	f.connected()
}
