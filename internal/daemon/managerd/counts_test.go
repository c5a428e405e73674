package managerd

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/pathsel"
)

func TestEpochsAreCountedOnce(t *testing.T) {
	trees := func(group, epoch uint32) manager.Record {
		return manager.Record{Kind: manager.TreesRecord, Group: group, Trees: &manager.Trees{Epoch: epoch}}
	}
	c := newCounts([]manager.Record{trees(1, 8), {Kind: manager.FleetRecord, Fleet: &manager.Fleet{}}})
	for _, step := range []struct {
		record manager.Record
		want   uint64
	}{
		{trees(1, 8), 0},  // stored again after a restart
		{trees(1, 10), 1}, // given
		{trees(1, 10), 1}, // active
		{trees(2, 2), 2},
		{manager.Record{Kind: manager.SpecRecord, Group: 3, Spec: &manager.Spec{}}, 2},
		{trees(3, 0), 2}, // none yet
		{manager.Record{Kind: manager.TreesRecord, Group: 1, Delete: true}, 2},
		{trees(3, 2), 3},
	} {
		c.given([]manager.Record{step.record})
		if n := c.epochs.Load(); n != step.want {
			t.Errorf("after %+v: %d, want %d", step.record, n, step.want)
		}
	}
	if _, kept := c.last[1]; kept {
		t.Error("a group that is gone is remembered")
	}
}

func TestRefusalsAreCountedByResource(t *testing.T) {
	c := newCounts(nil)
	c.planned(time.Millisecond, nil)
	c.planned(time.Millisecond, fmt.Errorf("planning: %w", &pathsel.Refusal{Resource: pathsel.Slots}))
	c.planned(time.Millisecond, errors.New("something else"))
	c.planned(time.Millisecond, fmt.Errorf("planning: %w", &pathsel.HostsFaster{}))
	c.refusal(&agent.Refusal{Cause: agent.Slots})
	c.refusal(&agent.Refusal{Cause: agent.Slots})
	want := map[shortage]uint64{
		{byPlanner, "slots"}: 1, {byPlanner, "other"}: 1, {bySwitch, "slots"}: 2,
	}
	planned, _, _ := c.planning.Snapshot()
	if got := c.refusals(); !maps.Equal(got, want) || c.chosen.Load() != 1 || c.refused.Load() != 2 || c.spared.Load() != 1 || planned != 4 {
		t.Errorf("%v, %d chosen, %d refused, want %v", got, c.chosen.Load(), c.refused.Load(), want)
	}
}
