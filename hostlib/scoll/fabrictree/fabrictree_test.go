package fabrictree_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/hostlib/scoll/aggregate"
	"github.com/tributary-fabric/tributary/hostlib/scoll/fabrictree"
	"github.com/tributary-fabric/tributary/internal/whole/embedded"
	"github.com/tributary-fabric/tributary/topology"
)

const patience = time.Minute

// twoLeaves is two leaves under a spine, with three hosts.
func twoLeaves(radix int) fabrictree.Plan {
	return fabrictree.Plan{Parents: []int{-1, 0, 0}, At: map[string]int{"a": 1, "b": 2, "c": 1}, Radix: radix}
}

func targets(names ...string) []scoll.Target {
	var all []scoll.Target
	for _, name := range names {
		all = append(all, scoll.Target{Node: name, Tags: []scoll.Tag{{1}}})
	}
	return all
}

func TestPlansThatAreNone(t *testing.T) {
	plans := fabrictree.New()
	for name, p := range map[string]fabrictree.Plan{
		"no switches":       {},
		"a ring":            {Parents: []int{-1, 2, 1}},
		"beside the plan":   {Parents: []int{-1}, At: map[string]int{"a": 1}},
		"a negative radix":  {Parents: []int{-1}, Radix: -1},
		"two topmost of it": {Parents: []int{-1, -1}},
	} {
		if err := plans.Add(1, p); !errors.Is(err, fabrictree.ErrPlan) {
			t.Errorf("%s: %v, want ErrPlan", name, err)
		}
	}
	if err := plans.Add(1, twoLeaves(0)); err != nil {
		t.Fatal(err)
	}
	if err := plans.Add(1, twoLeaves(0)); !errors.Is(err, fabrictree.ErrPlan) {
		t.Errorf("a number twice: %v", err)
	}
	for name, c := range map[string]struct {
		nodes []string
		radix int
		want  error
	}{
		"an unknown number": {[]string{"a"}, 2, fabrictree.ErrKnown},
		"an unknown node":   {[]string{"a", "x"}, 1, fabrictree.ErrPlace},
	} {
		m, err := scoll.NewMembers(1, targets(c.nodes...))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := plans.Shape(m, 0, c.radix); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	plans.Remove(1)
	if err := plans.Add(1, twoLeaves(2)); err != nil {
		t.Errorf("a number that is free again: %v", err)
	}
	if _, err := fabrictree.FromManager(hostlib.CollectionTree{}, make([]hostlib.Member, 1), 0); !errors.Is(err, fabrictree.ErrPlan) {
		t.Errorf("a tree of others: %v", err)
	}
}

// TestPoint52OrderOfMembers: those beneath one switch are neighbours.
func TestPoint52OrderOfMembers(t *testing.T) {
	p := fabrictree.Plan{
		Parents: []int{2, -1, 1, 1, 3, 2},
		At:      map[string]int{"a": 0, "b": 4, "c": 5, "d": 0, "e": 3, "f": 5},
	}
	var got []string
	for _, target := range p.Order(targets("x", "f", "e", "d", "c", "b", "a")) {
		got = append(got, target.Node)
	}
	if want := []string{"a", "d", "c", "f", "e", "b", "x"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestAlongTheManagersTree: 16 nodes of a fat tree ask the manager for their
// tree, and broadcast along it from each of them.
func TestAlongTheManagersTree(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	g, err := topology.Parse("fat-tree:4")
	if err != nil {
		t.Fatal(err)
	}
	fabric, err := embedded.Start(ctx, embedded.Config{Topology: g, OfferWait: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer fabric.Close()
	comms, err := fabric.Communicators(ctx, "all")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	services := make([]*scoll.Service, len(comms))
	ran := make([]int, len(comms))
	number := uint16(0)
	var plan fabrictree.Plan
	var mu sync.Mutex
	for i, c := range comms {
		collection, err := c.CollectionTree(ctx)
		if err != nil {
			t.Fatal(err)
		}
		number = fabrictree.NumberOf(collection.Epoch)
		if plan, err = fabrictree.FromManager(collection, c.Members(), 0); err != nil {
			t.Fatal(err)
		}
		plans := fabrictree.New()
		if err := plans.Add(number, plan); err != nil {
			t.Fatal(err)
		}
		name := c.Members()[i].Host
		node, err := scoll.On(fabric.Hosts()[i], scoll.Config{
			RoundTrip: patience, Trees: map[uint8]scoll.Shape{fabrictree.Kind: plans.Shape},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer node.Close(ctx)
		names = append(names, name)
		run := func(*scoll.Request) (uint32, string) {
			mu.Lock()
			defer mu.Unlock()
			ran[i]++
			return 0, ""
		}
		services[i], err = node.Register(1, scoll.Statuses(0, run, func(*scoll.Request, *aggregate.Statuses) {}))
		if err != nil {
			t.Fatal(err)
		}
	}
	for root, s := range services {
		group := make(chan *scoll.Group, 1)
		spec := scoll.GroupSpec{Name: "all", Targets: plan.Order(targets(names...)), Tree: fabrictree.Tree(number)}
		if err := s.CreateGroup(spec, func(g *scoll.Group, err error) {
			if err != nil {
				t.Error(err)
			}
			group <- g
		}); err != nil {
			t.Fatal(err)
		}
		over := <-group
		if over == nil {
			t.FailNow()
		}
		children, err := over.Children()
		if err != nil || len(children) != 2 { // its neighbour, and the next edge switch's
			t.Errorf("%s has the children %v, %v", names[root], children, err)
		}
		r, err := over.NewRequest(scoll.Broadcast{})
		if err == nil {
			err = r.Send()
		}
		if err != nil {
			t.Fatal(err)
		}
		<-r.Done()
		if r.Err() != nil || r.Outcome().Ran != len(comms) {
			t.Errorf("from %s: %+v, %v", names[root], r.Outcome(), r.Err())
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for i, times := range ran {
		if times != len(comms) {
			t.Errorf("%s has run %d requests, want %d", names[i], times, len(comms))
		}
	}
	spec := scoll.GroupSpec{Name: "all", Targets: targets(names...), Tree: fabrictree.Tree(number + 1)}
	if err := services[0].CreateGroup(spec, func(*scoll.Group, error) {}); !errors.Is(err, scoll.ErrTree) {
		t.Errorf("a plan that is not there: %v, want ErrTree", err)
	}
	if err := embedded.Leave(ctx, comms); err != nil {
		t.Error(err)
	}
	apart, err := fabric.CommunicatorsApart(ctx, "apart")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := apart[0].CollectionTree(ctx); !errors.Is(err, hostlib.ErrNoTree) {
		t.Errorf("without a manager: %v, want ErrNoTree", err)
	}
	if err := embedded.Leave(ctx, apart); err != nil {
		t.Error(err)
	}
}
