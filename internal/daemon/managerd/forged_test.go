package managerd

import (
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/topology"
)

// TestForgeries: an alarm begins at forgedRate, by neighbour, and ends below it; a few forged packets,
// the first look, and an agent that has started again raise none.
func TestForgeries(t *testing.T) {
	sites := []manager.SiteState{{Group: 7, Name: "job", Epoch: 2, Children: []topology.Port{3, 5}, Up: 9}}
	var f forgeries
	now := time.Unix(100, 0)
	look := func(a, b, parent uint64) ([]forgery, uint64) {
		now = now.Add(10 * time.Second)
		return f.take(now, byEpoch(sites), []rpc.EpochTraffic{{Group: 7, EpochTraffic: switchreduce.EpochTraffic{
			Epoch: 2, Children: []switchreduce.Traffic{{Forged: a}, {Forged: b}}, Parent: &switchreduce.Traffic{Forged: parent},
		}}})
	}
	for i, step := range []struct {
		a, b, parent, fresh uint64
		want                []forgery
	}{
		{5000, 0, 0, 0, nil},
		{5000, 99, 0, 99, nil},
		{5000, 199, 0, 100, []forgery{{treeEdge{7, 2, 1}, "job", 5, 10, false}}},
		{5000, 1199, 2000, 3000, []forgery{{treeEdge{7, 2, -1}, "job", 9, 200, false}}},
		{5000, 1199, 4000, 2000, []forgery{{treeEdge{7, 2, 1}, "job", 5, 0, true}}},
		{0, 0, 50, 50, []forgery{{treeEdge{7, 2, -1}, "job", 9, 5, true}}},
	} {
		got, fresh := look(step.a, step.b, step.parent)
		if len(got) != len(step.want) || len(got) == 1 && got[0] != step.want[0] || fresh != step.fresh {
			t.Errorf("step %d: %+v, %d; want %+v, %d", i, got, fresh, step.want, step.fresh)
		}
	}
	look(500, 0, 50)
	if got, _ := f.take(now.Add(time.Second), byEpoch(sites), nil); len(got) != 1 || got[0] != (forgery{treeEdge: treeEdge{7, 2, 0}, isOver: true}) || len(f.counted) != 0 {
		t.Errorf("the tree is gone: %+v, %v", got, f.counted)
	}
	if got, fresh := f.take(now.Add(2*time.Second), byEpoch(sites), nil); got != nil || fresh != 0 {
		t.Errorf("what is over is kept: %v, %d", got, fresh)
	}
}
