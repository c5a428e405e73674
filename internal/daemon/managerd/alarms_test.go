package managerd

import (
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/linkaudit"
	"github.com/tributary-fabric/tributary/topology"
)

// An alarm keeps its begin for as long as it holds, whatever its numbers are.
func TestAlarmsKeepTheirBegin(t *testing.T) {
	g, err := topology.LeafSpine(1, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	d := &Daemon{cfg: Config{Topology: g}}
	leaf, spine := g.Switch(0), g.Switch(2)
	one := linkaudit.Mismatch{Link: 2, Direction: linkaudit.Sent, Seen: 1}
	other := linkaudit.Mismatch{Link: 2, Direction: linkaudit.Received}
	first, later := time.Unix(1, 0), time.Unix(2, 0)
	if over := d.alarms.set(leaf, []linkaudit.Mismatch{one}, first); len(over) > 0 {
		t.Errorf("%v is over before anything was", over)
	}
	d.alarms.set(spine, []linkaudit.Mismatch{other}, first)
	one.Seen = 7
	if over := d.alarms.set(leaf, []linkaudit.Mismatch{one, other}, later); len(over) > 0 {
		t.Errorf("%v is over", over)
	}
	links, all := d.mismatches()
	if len(links) != 3 || links[0] != 2 || !all[0].Since.Equal(first) || all[0].Seen != 7 || !all[0].Sent || !all[1].Since.Equal(later) ||
		all[0].Switch != g.Name(leaf) || all[2].Switch != g.Name(spine) || all[0].Link != g.LinkName(2) {
		t.Errorf("there are %v", all)
	}
	if over := d.alarms.set(leaf, []linkaudit.Mismatch{other}, later); len(over) != 1 || over[0].Direction != linkaudit.Sent {
		t.Errorf("over is %v", over)
	}
	d.alarms.set(leaf, nil, later)
	if _, all = d.mismatches(); len(all) != 1 {
		t.Errorf("there are still %v", all)
	}
}
