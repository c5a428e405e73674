package planbench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// The limits of time and memory, of the sizes of DefaultConfig.
const (
	planLimit    = 50 * time.Millisecond
	repairLimit  = 5 * time.Millisecond
	buildLimit   = time.Second
	memoryLimit  = 1 << 30 // bytes
	largestLimit = time.Second
	onlineLimit  = time.Millisecond
	ratioLimit   = 1.15
	hostLimit    = 96   // bytes of the graph a host, of a fat-tree
	linkLimit    = 32   // and a link
	limitedFrom  = 1000 // hosts: in a smaller fabric what every graph has counts the most
)

// Run measures everything and reports progress as it goes.
func Run(ctx context.Context, c Config, progress func(string)) (*Report, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	r := &Report{Reached: true}
	for _, step := range []struct {
		what string
		do   func(context.Context, Config, *Report, func(string)) error
	}{
		{fmt.Sprintf("fat-tree k=%d: plan and repair", c.Repaired), repaired},
		{fmt.Sprintf("fat-tree k=%d: build and plan", c.Largest), largest},
		{fmt.Sprintf("%d groups of %d hosts, fat-tree k=%d", c.Groups, c.Members, c.Online), online},
		{"groups in leaf-spines", leafSpines},
		{"groups by default, beside the criteria", defaults},
		{"groups in irregular fabrics", irregular},
		{"Steiner trees", steinerTrees},
	} {
		progress(step.what)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := step.do(ctx, c, r, progress); err != nil {
			return nil, fmt.Errorf("%s: %w", step.what, err)
		}
		runtime.GC()
	}
	return r, nil
}

// fabric returns a fat-tree whose switches have room for everything here.
func fabric(k int) (*topology.Graph, error) {
	e := topology.DefaultEquipment()
	e.Switch.Children, e.Switch.Slots = max(k, topology.DefaultChildren), 1<<24
	return e.FatTree(k)
}

// request asks for sums of 32 bits.
func request(members []topology.NodeID) pathsel.Request {
	return pathsel.Request{
		Members: members, Functions: topology.FunctionsOf(reduce.Sum), Types: topology.TypesOf(reduce.Float32), Slots: 128, ChunkBytes: 1432,
	}
}

// median returns the middle of the times that f takes.
func median(runs int, f func() error) (time.Duration, error) {
	times := make([]time.Duration, runs)
	for i := range times {
		begun := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		times[i] = time.Since(begun)
	}
	slices.Sort(times)
	return times[runs/2], nil
}

// repaired plans for all hosts, and repairs the tree after its root's death.
func repaired(_ context.Context, c Config, r *Report, _ func(string)) error {
	g, err := fabric(c.Repaired)
	if err != nil {
		return err
	}
	p, err := pathsel.NewPlanner(g, pathsel.Config{})
	if err != nil {
		return err
	}
	req := request(g.AllHosts())
	var plan pathsel.Plan
	took, err := median(c.Runs, func() (err error) {
		plan, err = p.Plan(g.View(), nil, req)
		return err
	})
	if err != nil {
		return err
	}
	name := fmt.Sprintf("fat-tree k=%d, all %d hosts: ", c.Repaired, g.Hosts())
	r.addTime(name+"plan", took, planLimit, fmt.Sprintf("%d hops, depth %d, exact: %v", plan.Figures.Hops, plan.Figures.Depth, plan.Exact))
	o, err := topology.NewOverlay(g).With(topology.NodeState(plan.Tree.Root(), false))
	if err != nil {
		return err
	}
	var fixed pathsel.Repaired
	took, err = median(c.Runs, func() (err error) {
		fixed, err = p.Repair(o.View(), nil, req, plan.Tree)
		return err
	})
	if err != nil {
		return err
	}
	fresh, err := p.Plan(o.View(), nil, req)
	if err != nil {
		return err
	}
	r.addTime(name+"repair after the root's death", took, repairLimit, fixed.Against(fresh))
	index := pathsel.NewIndex(g)
	index.Add(1, plan.Tree)
	took, err = median(c.Runs, func() error {
		if len(index.Down(o.View())) != 1 {
			return fmt.Errorf("the index does not find the tree on %s", g.Name(plan.Tree.Root()))
		}
		return nil
	})
	r.addTime(name+"find it in the index", took, 0, "")
	return err
}

// largest builds a fabric of about a million hosts, and plans for all.
func largest(_ context.Context, c Config, r *Report, _ func(string)) error {
	var before, after runtime.MemStats
	var g *topology.Graph
	runtime.GC()
	took, err := median(c.Runs, func() (err error) {
		g = nil
		runtime.ReadMemStats(&before)
		g, err = fabric(c.Largest)
		runtime.ReadMemStats(&after)
		return err
	})
	if err != nil {
		return err
	}
	name := fmt.Sprintf("fat-tree k=%d, all %d hosts: ", c.Largest, g.Hosts())
	r.addTime(name+"build", took, buildLimit, fmt.Sprintf("%d switches, %d links", g.Switches(), g.Links()))
	r.add(name+"memory allocated in building", float64(after.TotalAlloc-before.TotalAlloc)/(1<<20), "MiB", memoryLimit/(1<<20), "garbage included")
	ofHost, ofLink := float64(hostLimit), float64(linkLimit)
	if g.Hosts() < limitedFrom {
		ofHost, ofLink = 0, 0
	}
	r.add(name+"graph, a host", float64(g.Bytes())/float64(g.Hosts()), "bytes", ofHost, "its links and switches included")
	r.add(name+"graph, a link", float64(g.Bytes())/float64(g.Links()), "bytes", ofLink, "its hosts and switches included")
	var p *pathsel.Planner
	took, err = median(1, func() (err error) {
		p, err = pathsel.NewPlanner(g, pathsel.Config{})
		return err
	})
	if err != nil {
		return err
	}
	r.addTime(name+"index of the planner", took, 0, "once for each fabric")
	r.add(name+"planner, a host", float64(p.Bytes())/float64(g.Hosts()), "bytes", 0, "")
	req := request(g.AllHosts())
	var plan pathsel.Plan
	took, err = median(c.Runs, func() (err error) {
		plan, err = p.Plan(g.View(), nil, req)
		return err
	})
	if err != nil {
		return err
	}
	r.addTime(name+"plan", took, largestLimit, fmt.Sprintf("%d hops, depth %d, exact: %v", plan.Figures.Hops, plan.Figures.Depth, plan.Exact))
	return nil
}
