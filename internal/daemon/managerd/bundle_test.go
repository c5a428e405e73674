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

// TestStripes plans, makes and uses the stripes of a communicator: over another spine
// each, also under the manager's next life.
func TestStripes(t *testing.T) {
	f := newFabric(t, func(c *managerd.Config, _ map[string]*agentd.Config) { c.Store = &managerd.Memory{} })
	spec := f.spec("job")
	spec.Bundle = manager.Bundle{Name: "job", Kind: manager.Stripes, Count: 3}
	plan, err := f.client.PlanGroup(testContext(t), spec)
	if err != nil || len(plan.Groups) != 2 || !errors.Is(plan.Fewer, manager.ErrFewer) || plan.Groups[0].Root == plan.Groups[1].Root || plan.Groups[0].Figures.Bandwidth == 0 {
		t.Fatalf("of two spines there are the stripes %+v; %v", plan, err)
	}
	if all, err := f.client.Groups(testContext(t)); err != nil || len(all) > 0 {
		t.Errorf("a plan has made %+v; %v", all, err)
	}
	spec.Bundle.Count = 2
	var stripes []*group
	roots := map[string]bool{}
	for i := range 2 {
		spec.Name, spec.Bundle.Index = fmt.Sprint("job/", i), i
		stripe := f.newGroup(spec)
		offers := stripe.offers(0)
		roots[stripe.root(offers[0].Epoch)] = true
		stripe.allreduce(offers, 0)
		stripes = append(stripes, stripe)
	}
	if len(roots) != 2 {
		t.Errorf("the roots are %v", roots)
	}
	f.manager.Kill()
	f.startManager()
	e := stripes[0].explain()
	if e.Bundle.Index != 0 || len(e.Sisters) != 1 || e.Sisters[0].Group != stripes[1].id || e.Sisters[0].Bundle.Index != 1 {
		t.Errorf("after a restart it is %v beside %+v", e.Bundle, e.Sisters)
	}
	spec.Name = "late"
	if _, _, err := f.client.CreateGroup(testContext(t), spec); !errors.Is(err, manager.ErrBundle) {
		t.Errorf("a second stripe 1: %v", err)
	}
	if err := f.client.ReleaseGroup(testContext(t), stripes[0].id); err != nil {
		t.Error(err)
	}
	f.eventually("the second stripe has been released with the first", func(ctx context.Context) (bool, error) {
		_, err := f.client.Explain(ctx, rpc.GroupRef{Group: stripes[1].id})
		return errors.Is(err, manager.ErrUnknownGroup), nil
	})
}
