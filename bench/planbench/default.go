package planbench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/bench/spread"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// The limits of the default beside the criterion that is for a purpose alone.
const (
	aloneLimit = 1.1 // hops and latency of a group alone in a fabric
	timesLimit = 4   // the time of a plan
)

// beside are the default and what can be asked for in its place.
var beside = [...]pathsel.Criterion{pathsel.ByFunction, pathsel.LeastLoad, pathsel.FewestHops, pathsel.LeastLatency, pathsel.WidestLink}

// defaultCounts are the numbers of groups at which they are compared.
var defaultCounts = []int{1, 20, 200, 1000}

// expected is a purpose, and the criterion that is for it alone.
type expected struct {
	pathsel.Purpose
	alone pathsel.Criterion
	slow  float64 // how much slower than by that an operation over a tree may be
}

var purposes = []expected{
	{pathsel.Purpose{}, pathsel.FewestHops, 0},
	{pathsel.Purpose{Collective: pathsel.Allreduce, Bytes: 4 << 10}, pathsel.LeastLatency, aloneLimit},
	{pathsel.Purpose{Collective: pathsel.Allreduce, Bytes: 64 << 20}, pathsel.WidestLink, 0},
}

// testbed is fabrics of a kind, and the members of each group there; 0: of 2 to 32.
type testbed struct {
	name    string
	graphs  []*topology.Graph
	members int
}

// defaults plans the same groups by default and by each criterion, in turns, and shows
// the default beside them.
func defaults(ctx context.Context, c Config, r *Report, progress func(string)) error {
	beds, err := testbeds(c)
	if err != nil {
		return err
	}
	for _, bed := range beds {
		for _, purpose := range purposes {
			if err := ctx.Err(); err != nil {
				return err
			}
			progress(fmt.Sprintf("by default, %s: %s", bed.name, purpose.Words()))
			if err := bed.compare(purpose, c, r); err != nil {
				return err
			}
		}
	}
	return nil
}

func testbeds(c Config) (beds []testbed, err error) {
	e := topology.DefaultEquipment()
	e.Switch.Slots = 1 << 24
	for _, b := range []testbed{{name: "leaf-spine:16,64,16", members: 64}, {name: "fat-tree:16", members: 32}, {name: fmt.Sprintf("fat-tree:%d", c.Online), members: c.Members}} {
		g, err := e.Parse(b.name)
		if err != nil {
			return nil, err
		}
		b.graphs = []*topology.Graph{g}
		beds = append(beds, b)
	}
	for _, layered := range []bool{true, false} {
		b := testbed{name: fmt.Sprintf("%d meshed fabrics", len(irregularSizes))}
		if layered {
			b.name = fmt.Sprintf("%d layered irregular fabrics", len(irregularSizes))
		}
		for _, switches := range irregularSizes {
			g, err := spread.Irregular(c.Seed, switches, layered)
			if err != nil {
				return nil, err
			}
			b.graphs = append(b.graphs, g)
		}
		beds = append(beds, b)
	}
	return beds, nil
}

// tally is what so many groups come to by one criterion, over all fabrics.
type tally struct {
	links, cpus, slots float64 // of the most loaded, in sum; of links against their bound
	hops, latency      float64
	took               time.Duration // of the processor, in sum of all plans
	plans              int
}

// compare plans groups of one purpose.
func (b *testbed) compare(purpose expected, c Config, r *Report) error {
	counts := slices.DeleteFunc(slices.Clone(defaultCounts), func(n int) bool { return n > c.Groups })
	all := make([][len(beside)]tally, len(counts))
	for _, g := range b.graphs {
		if err := b.place(g, purpose, c.Seed, counts, all); err != nil {
			return err
		}
	}
	for i, n := range counts {
		b.report(fmt.Sprintf("by default, %d groups, %s, %s: ", n, b.name, purpose.Words()), purpose, n, &all[i], r)
	}
	return nil
}

// contender is the groups as they are placed by one criterion.
type contender struct {
	stream
	hops    int
	latency time.Duration
	took    time.Duration
	plans   int
}

// place plans groups in one fabric by all criteria, in turns.
func (b *testbed) place(g *topology.Graph, purpose expected, seed uint64, counts []int, all [][len(beside)]tally) error {
	p, err := pathsel.NewPlanner(g, pathsel.Config{})
	if err != nil {
		return err
	}
	var contenders [len(beside)]contender
	for i := range contenders {
		contenders[i].stream = stream{planner: p, load: pathsel.NewLoad(g), rng: rand.New(rand.NewPCG(seed, 1))}
	}
	sizes := rand.New(rand.NewPCG(seed, 2))
	for n := 1; n <= counts[len(counts)-1]; n++ {
		members := b.members
		if members == 0 {
			members = 2 + sizes.IntN(min(irregularMembers, g.Hosts())-1)
		}
		for turn := range beside {
			i := (turn + n) % len(beside)
			if err := contenders[i].plan(members, purpose.Purpose, beside[i]); err != nil {
				return err
			}
		}
		if at := slices.Index(counts, n); at >= 0 {
			if err := count(g, &contenders, &all[at]); err != nil {
				return err
			}
		}
	}
	return nil
}

// plan places one more group.
func (s *contender) plan(members int, purpose pathsel.Purpose, by pathsel.Criterion) error {
	req := s.next(members)
	req.Purpose = purpose
	req.Criterion = by
	begun := spent()
	plan, err := s.planner.Plan(s.planner.Graph().View(), s.load, req)
	if err != nil {
		return err
	}
	s.took, s.plans = s.took+spent()-begun, s.plans+1
	s.load.Add(plan.Tree, req.Slots)
	s.hops, s.latency = s.hops+plan.Figures.Hops, s.latency+plan.Figures.Latency
	return nil
}

// count adds what contenders have come to in one fabric.
func count(g *topology.Graph, contenders *[len(beside)]contender, to *[len(beside)]tally) error {
	bound, err := leastPeak(g, &contenders[0].stream)
	if err != nil {
		return err
	}
	for i := range contenders {
		s, t := &contenders[i], &to[i]
		peaks, n := s.load.Peaks(), float64(s.plans)
		links := 0
		for id, link := range g.AllLinks() {
			if g.IsSwitch(link.Ends[0].Node) && g.IsSwitch(link.Ends[1].Node) {
				links = max(links, s.load.LinkTrees(id))
			}
		}
		t.links += float64(links) / bound
		t.cpus, t.slots = t.cpus+slices.Max(peaks.CPUs), t.slots+slices.Max(peaks.Slots)
		t.hops, t.latency = t.hops+float64(s.hops)/n, t.latency+s.latency.Seconds()/n
		t.took, t.plans = t.took+s.took, t.plans+s.plans
	}
	return nil
}

// leastPeak returns what the most loaded link between switches must carry, at least 1.
func leastPeak(g *topology.Graph, s *stream) (float64, error) {
	if !strings.HasPrefix(g.Fabric(), "layered") {
		if floors, ok := s.planner.Floors(s.members, s.slots); ok {
			return max(whole(slices.Max(floors.Links[1:])), 1), nil
		}
	}
	found, err := spread.Least(g, s.members, float64(len(s.members)), boundRounds)
	return max(whole(found.Least), 1), err
}

// report adds the default's figures.
func (b *testbed) report(name string, purpose expected, n int, all *[len(beside)]tally, r *Report) {
	alone := &all[slices.Index(beside[:], purpose.alone)]
	each := func(f func(*tally) float64) string {
		var parts []string
		for i := 1; i < len(beside); i++ {
			parts = append(parts, fmt.Sprintf("%v %.2f", beside[i], f(&all[i])))
		}
		return strings.Join(parts, ", ")
	}
	d, fabrics := &all[0], float64(len(b.graphs))
	links := func(t *tally) float64 { return t.links / fabrics }
	r.add(name+"most loaded link", links(d), "x the bound", links(alone), each(links))
	r.add(name+"most loaded switch CPU", d.cpus/alone.cpus, fmt.Sprintf("x by %v", purpose.alone), ratioLimit, "")
	r.add(name+"most slots", d.slots/alone.slots, fmt.Sprintf("x by %v", purpose.alone), ratioLimit, "")
	hopsLimit, latencyLimit := 0.0, purpose.slow
	if n == 1 {
		hopsLimit, latencyLimit = aloneLimit, aloneLimit
	}
	hops := func(t *tally) float64 { return t.hops / all[2].hops }
	r.add(name+"hops", hops(d), "x the fewest", hopsLimit, each(hops))
	latency := func(t *tally) float64 { return t.latency / alone.latency }
	r.add(name+"latency", latency(d), fmt.Sprintf("x by %v", purpose.alone), latencyLimit, each(latency))
	mean := func(t *tally) float64 { return t.took.Seconds() * 1000 / float64(t.plans) }
	limit := 0.0
	if n >= 20 {
		limit = timesLimit
	}
	r.add(name+"processor time of a plan, mean", mean(d)/mean(alone), fmt.Sprintf("x the time by %v", purpose.alone), limit, fmt.Sprintf("%.2f ms; %s", mean(d), each(mean)))
}
