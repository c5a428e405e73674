package managerd_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
)

// TestLanes plans, makes and uses the lanes of a communicator: over another spine
// each, also under the manager's next life.
func TestLanes(t *testing.T) {
	f := newFabric(t, func(c *managerd.Config, _ map[string]*agentd.Config) { c.Store = &managerd.Memory{} })
	spec := f.spec("job")
	spec.Bundle = manager.Bundle{Name: "job", Kind: manager.Lanes, Count: 3}
	plan, err := f.client.PlanGroup(testContext(t), spec)
	if err != nil || len(plan.Groups) != 2 || !errors.Is(plan.Fewer, manager.ErrFewer) || plan.Groups[0].Root == plan.Groups[1].Root || plan.Groups[0].Figures.Bandwidth == 0 {
		t.Fatalf("of two spines there are the lanes %+v; %v", plan, err)
	}
	if all, err := f.client.Groups(testContext(t)); err != nil || len(all) > 0 {
		t.Errorf("a plan has made %+v; %v", all, err)
	}
	spec.Bundle.Count = 2
	var lanes []*group
	roots := map[string]bool{}
	for i := range 2 {
		spec.Name, spec.Bundle.Index = fmt.Sprint("job/", i), i
		lane := f.newGroup(spec)
		offers := lane.offers(0)
		roots[lane.root(offers[0].Epoch)] = true
		lane.allreduce(offers, 0)
		lanes = append(lanes, lane)
	}
	if len(roots) != 2 {
		t.Errorf("the roots are %v", roots)
	}
	f.manager.Kill()
	f.startManager()
	e := lanes[0].explain()
	if e.Bundle.Index != 0 || len(e.Sisters) != 1 || e.Sisters[0].Group != lanes[1].id || e.Sisters[0].Bundle.Index != 1 {
		t.Errorf("after a restart it is %v beside %+v", e.Bundle, e.Sisters)
	}
	spec.Name = "late"
	if _, _, err := f.client.CreateGroup(testContext(t), spec); !errors.Is(err, manager.ErrBundle) {
		t.Errorf("a second lane 1: %v", err)
	}
	if err := f.client.ReleaseGroup(testContext(t), lanes[0].id); err != nil {
		t.Error(err)
	}
	f.eventually("the second lane has been released with the first", func(ctx context.Context) (bool, error) {
		_, err := f.client.Explain(ctx, rpc.GroupRef{Group: lanes[1].id})
		return errors.Is(err, manager.ErrUnknownGroup), nil
	})
}
