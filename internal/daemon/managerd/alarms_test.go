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
	var d Daemon
	leaf, spine := "leaf-0", "spine-0"
	one := linkaudit.Mismatch{Port: 2, Direction: linkaudit.Sent, Seen: 1}
	other := linkaudit.Mismatch{Port: 2, Direction: linkaudit.Received}
	first, later := time.Unix(1, 0), time.Unix(2, 0)
	if over := d.alarms.set(leaf, []linkaudit.Mismatch{one}, first); len(over) > 0 {
		t.Errorf("%v is over before anything was", over)
	}
	d.alarms.set(spine, []linkaudit.Mismatch{other}, first)
	one.Seen = 7
	if over := d.alarms.set(leaf, []linkaudit.Mismatch{one, other}, later); len(over) > 0 {
		t.Errorf("%v is over", over)
	}
	all := d.mismatches(g)
	if len(all) != 3 || !all[0].Since.Equal(first) || all[0].Seen != 7 || !all[0].Sent || !all[1].Since.Equal(later) ||
		all[0].Switch != leaf || all[2].Switch != spine || all[0].Link != "leaf-0:2--spine-0:1" {
		t.Errorf("there are %v", all)
	}
	if over := d.alarms.set(leaf, []linkaudit.Mismatch{other}, later); len(over) != 1 || over[0].Direction != linkaudit.Sent {
		t.Errorf("over is %v", over)
	}
	d.alarms.set(leaf, nil, later)
	if all = d.mismatches(g); len(all) != 1 {
		t.Errorf("there are still %v", all)
	}
}
