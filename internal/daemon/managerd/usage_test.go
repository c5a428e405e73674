package managerd

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core/linkaudit"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/processor"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/topology"
)

// TestMeter reads counters a second apart: of what the interface of a link has
// carried, that of trees is not foreign.
func TestMeter(t *testing.T) {
	g, err := topology.LeafSpine(1, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	const port = 2
	leaf := g.Switch(0)
	link, _ := g.LinkAt(leaf, port)
	full := uint64(g.Link(link).Bandwidth / 8) // bytes in a second
	site := &manager.SiteState{Group: 1, Epoch: 2}
	var m meter
	var at time.Time
	read := func(busy, total time.Duration, in, out uint64, tree ...switchreduce.Traffic) usage {
		var trees []exchange
		for _, x := range tree {
			trees = append(trees, exchange{site, port, x})
		}
		at = at.Add(time.Second)
		return m.take(at, g, leaf, processor.Time{Busy: busy, Total: total}, []linkaudit.Port{{Port: port, Count: linkaudit.Count{In: in, Out: out}}}, trees)
	}
	want := func(what string, u usage, cpu, foreign float64) {
		t.Helper()
		if math.Abs(u.cpu-cpu) > 1e-9 || math.Abs(u.foreign[port]-foreign) > 1e-6 {
			t.Errorf("%s: %v and %v, want %v and %v", what, u.cpu, u.foreign[port], cpu, foreign)
		}
	}
	want("at first", read(time.Second, time.Minute, 0, 0), 0, 0)
	want("half the link, a quarter of the CPU", read(2*time.Second, time.Minute+4*time.Second, full/2, full/8), 0.125, 0.25)
	want("the same again", read(3*time.Second, time.Minute+8*time.Second, full, full/4), 0.1875, 0.375)
	// All of it is a tree's now, headers included: 1,000 packets of them.
	tree := switchreduce.Traffic{}
	u := read(3*time.Second, time.Minute+12*time.Second, full, full/4, tree)
	want("nothing", u, 0.09375, 0.1875)
	tree.PacketsIn, tree.BytesIn = 1000, full/4-frameHeaders*1000
	want("of a tree", read(3*time.Second, time.Minute+16*time.Second, full+full/4, full/4, tree), 0.046875, 0.09375)
	// Counters begin anew: nothing is known of this time.
	want("anew", read(0, time.Second, 5, 5), 0, 0.046875)
	if u := m.take(at, g, leaf, processor.Time{}, nil, nil); len(u.foreign) > 0 || u.cpu != 0 {
		t.Errorf("nothing can be read: %+v", u)
	}
}

// TestSettled: what plans count is a multiple of a step, follows what is measured
// within three quarters of one, and stays where it is while that moves by less.
func TestSettled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reported := 0.0
		for range 20 {
			is := rapid.Float64Range(0, 1).Draw(t, "is")
			next := settled(reported, is)
			if math.Abs(next-is) >= 0.75*step || next != math.Round(next/step)*step || next < 0 || next > 1 {
				t.Fatalf("%v is measured, %v was notified, %v is", is, reported, next)
			}
			if math.Abs(reported-is) < 0.75*step && next != reported {
				t.Fatalf("%v is measured: %v became %v", is, reported, next)
			}
			// Wavering about a value by up to an eighth of a step settles.
			for range 4 {
				near := min(max(is+rapid.Float64Range(-step/8, step/8).Draw(t, "near"), 0), 1)
				if again := settled(next, near); again != next && math.Abs(next-is) < step/2 {
					t.Fatalf("%v is measured after %v: %v became %v", near, is, next, again)
				}
			}
			reported = next
		}
	})
}

// TestExchangesByLink: where several children are beyond one link, an auditor
// gets what they have exchanged together.
func TestExchangesByLink(t *testing.T) {
	site := manager.SiteState{Group: 3, Epoch: 4, Window: 8, ChunkBytes: 100, Up: 9, Children: []topology.Port{5, 6, 5}}
	traffic := func(n uint64) switchreduce.Traffic {
		return switchreduce.Traffic{PacketsIn: n, BytesIn: 10 * n, PacketsOut: 2 * n, BytesOut: 20 * n}
	}
	up := traffic(7)
	epoch := switchreduce.EpochTraffic{Epoch: 4, Parent: &up, Children: []switchreduce.Traffic{traffic(1), traffic(2), traffic(3)}}
	all := exchanges(byEpoch([]manager.SiteState{site}), []rpc.EpochTraffic{{Group: 3, EpochTraffic: epoch}})
	if len(all) != 3 || all[0].port != 5 || all[0].Traffic != traffic(4) || all[1].port != 6 || all[1].Traffic != traffic(2) || all[2].port != 9 {
		t.Fatalf("%+v", all)
	}
	list := flows(all)
	if len(list) != 3 || list[0].Count != (linkaudit.Count{In: 40, Out: 80}) || list[0].Window != 2*list[1].Window || list[2].Window != list[1].Window {
		t.Errorf("%+v", list)
	}
	if strange := exchanges(byEpoch([]manager.SiteState{site}), []rpc.EpochTraffic{{Group: 4, EpochTraffic: epoch}}); len(strange) > 0 {
		t.Errorf("of another group: %+v", strange)
	}
}
