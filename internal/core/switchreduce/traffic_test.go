package switchreduce

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-fabric/tributary/internal/wire"
)

func TestTraffic(t *testing.T) {
	tr := newTrial()
	step := func(lines ...string) {
		tr.in = nil
		for _, l := range lines {
			tr.queue(l)
		}
		tr.out.Reset()
		tr.core.Step(tr.now, tr.in, &tr.out)
	}
	const head, body = wire.HeaderSize, 8 // two int32
	step("install epoch=2 window=2 children=0,3 parent=yes lease=3s")
	step("a contribution 0 7 8", "b contribution 0 1 1", "x contribution 0 1 1", "a contribution 0 7 8 cookie=8")
	step("p result 0 1 1 cookie=0", "p heard 0 cookie=23")
	step("p result 0 8 9")
	want := []EpochTraffic{{
		Epoch: 2,
		// The stranger's packet counts for nobody.
		Children: []Traffic{{1, head + body, 1, head + body, 1}, {1, head + body, 1, head + body, 0}},
		Parent:   &Traffic{1, head + body, 1, head + body, 2},
	}}
	if diff := cmp.Diff(want, tr.core.Traffic()); diff != "" {
		t.Error(diff)
	}
	// A duplicate was carried; a probe of what is there is answered with it.
	step("a contribution 0 7 8", "b probe 0")
	want[0].Children = []Traffic{{2, 2 * (head + body), 1, head + body, 1}, {2, 2*head + body, 2, 2 * (head + body), 0}}
	if diff := cmp.Diff(want, tr.core.Traffic()); diff != "" {
		t.Error(diff)
	}
	// A later epoch has counts of its own, and other neighbours.
	step("install epoch=4 window=2 children=0,1,2 lease=3s")
	step("c contribution 0 7 8")
	want = append(want, EpochTraffic{Epoch: 4, Children: []Traffic{{}, {}, {PacketsIn: 1, BytesIn: head + body}}})
	if diff := cmp.Diff(want, tr.core.Traffic()); diff != "" {
		t.Error(diff)
	}
	step("retire epoch=2")
	if diff := cmp.Diff(want[1:], tr.core.Traffic()); diff != "" {
		t.Error(diff)
	}
}
