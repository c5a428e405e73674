package managerd

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/discovery"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/topology"
)

// TestAlarmsEvictNoChanges: a change of the map is in its history after however many alarms,
// also after a restart, and before them.
func TestAlarmsEvictNoChanges(t *testing.T) {
	g, err := topology.LeafSpine(1, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Listen: "127.0.0.1:0", Topology: g, Store: new(Memory)}
	start := func() *Daemon {
		t.Helper()
		d, err := Start(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Kill)
		return d
	}
	history := func(d *Daemon) []rpc.MapChange {
		t.Helper()
		all, err := d.TopologyHistory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	alarm := func(i int) discovery.AlarmChange {
		return discovery.AlarmChange{Alarm: discovery.Alarm{Kind: discovery.Hub, Places: [2]discovery.Place{{Node: "leaf-0"}}, Text: fmt.Sprint("number ", i)}, Raised: i%2 == 0}
	}
	d := start()
	if err := d.ChangeTopology(topology.LinkState(0, false)); err != nil {
		t.Fatal(err)
	}
	// More at once than an entry names: the others are counted.
	var burst []discovery.AlarmChange
	for i := range maxDifferences + 7 {
		burst = append(burst, alarm(i))
	}
	d.raise(burst)
	d.rememberAlarms(d.raised.Poll())
	if last := history(d)[1]; last.More != 7 || len(last.What) != maxDifferences || last.What[1] != "alarm is over: hub: leaf-0: number 1" {
		t.Errorf("of a burst there is %+v", last)
	}
	const alarms = 1000
	for i := range alarms {
		d.raise([]discovery.AlarmChange{alarm(i)})
		d.rememberAlarms(d.raised.Poll())
	}
	for restarts := range 2 {
		all := history(d)
		if len(all) != 129+restarts || !strings.HasPrefix(all[0].What[0], "h0:1--leaf-0:1 is down") {
			t.Fatalf("after %d restarts %d entries, first %+v", restarts, len(all), all[0])
		}
		for i, c := range all[1:129] {
			if want := fmt.Sprint("number ", alarms-128+i); c.Cause != "discovery" || !strings.HasSuffix(c.What[0], want) || c.More != 0 {
				t.Errorf("after %d restarts entry %d, of %s, is %+v", restarts, i, want, c)
			}
		}
		if restarts == 0 {
			if err := d.DrainSwitch(t.Context(), "spine-0", true); err != nil { // then what came before is stored, too
				t.Fatal(err)
			}
			d.Kill()
			d = start()
		}
	}
}
