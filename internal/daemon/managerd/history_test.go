package managerd_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/topology"
)

// TestHistoryIsKept restarts a manager after more changes than are kept: the last are
// there, and an entry for each restart. One that cannot be read is left out.
func TestHistoryIsKept(t *testing.T) {
	const most = 256
	f := newFabric(t, func(c *managerd.Config, _ map[string]*agentd.Config) { c.Store = new(managerd.Memory) })
	history := func() []rpc.MapChange {
		t.Helper()
		all, err := f.client.TopologyHistory(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			all[i].At = all[i].At.UTC().Round(time.Microsecond)
		}
		return all
	}
	if all := history(); len(all) != 0 {
		t.Errorf("a new manager has the history %+v", all)
	}
	for i := range most + 44 {
		if err := f.manager.ChangeTopology(topology.LinkState(0, i%2 > 0)); err != nil {
			t.Fatal(err)
		}
	}
	kill := func() {
		t.Helper()
		if err := f.client.DrainSwitch(testContext(t), "spine-0", true); err != nil { // then what came before is stored, too
			t.Fatal(err)
		}
		f.manager.Kill()
	}
	for range 2 {
		before := history()
		if len(before) != most || before[0].What[0] == "" {
			t.Fatalf("%d entries, %+v at last", len(before), before[most-2:])
		}
		kill()
		f.startManager()
		after := history()
		last := after[len(after)-1]
		if diff := cmp.Diff(before[1:], after[:len(after)-1]); diff != "" {
			t.Errorf("before and after a restart:\n%s", diff)
		}
		if len(after) != most || last.Cause != "the manager was started" || !strings.HasPrefix(last.What[0], "manager restarted") || last.At.Before(before[most-1].At) {
			t.Errorf("at last there is %+v", last)
		}
	}

	before := history()
	kill()
	all, err := f.cfg.Store.Load()
	if err != nil {
		t.Fatal(err)
	}
	last := slices.MaxFunc(all, func(a, b manager.Record) int { return int(a.Seq) - int(b.Seq) })
	spoiled := all[slices.IndexFunc(all, func(r manager.Record) bool { return r.Kind == manager.HistoryRecord })]
	spoiled.Kept, spoiled.Seq = []byte("{"), last.Seq+1
	if err := f.cfg.Store.Save([]manager.Record{spoiled}); err != nil {
		t.Fatal(err)
	}
	f.startManager()
	if all := history(); len(all) != most || !cmp.Equal(all[:most-1], before[1:]) {
		t.Errorf("%d entries are left:\n%s", len(all), cmp.Diff(before[1:], all))
	}
}
