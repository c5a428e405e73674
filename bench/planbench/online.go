package planbench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// counts are the numbers of groups at which the balance is looked at.
var counts = []int{10, 100, 200, 1000, 10_000}

// online plans many groups one after another in a fat-tree.
func online(ctx context.Context, c Config, r *Report, progress func(string)) error {
	g, err := fabric(c.Online)
	if err != nil {
		return err
	}
	return many(ctx, g, fmt.Sprintf("k=%d", c.Online), c, c.Members, r, progress)
}

// leafSpines does so in leaf-spines, one of many spines and one of few.
func leafSpines(ctx context.Context, c Config, r *Report, progress func(string)) error {
	e := topology.DefaultEquipment()
	e.Switch.Slots = 1 << 24
	for _, test := range []struct {
		fabric  string
		members int
	}{{"leaf-spine:16,64,16", 64}, {"leaf-spine:4,16,6", 9}} {
		g, err := e.Parse(test.fabric)
		if err != nil {
			return err
		}
		if err := many(ctx, g, test.fabric, c, test.members, r, progress); err != nil {
			return err
		}
	}
	return nil
}

// many plans groups one after another, none of them moved later, and holds what
// they load against what any placement must load.
func many(ctx context.Context, g *topology.Graph, fabric string, c Config, members int, r *Report, progress func(string)) error {
	p, err := pathsel.NewPlanner(g, pathsel.Config{})
	if err != nil {
		return err
	}
	s := &stream{planner: p, load: pathsel.NewLoad(g), rng: rand.New(rand.NewPCG(c.Seed, 0))}
	times := make([]time.Duration, c.Groups)
	var sum time.Duration
	for i := range times {
		if i%1000 == 999 {
			progress(fmt.Sprintf("%d groups planned", i+1))
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		begun := spent()
		if times[i], err = s.place(members); err != nil {
			return err
		}
		sum += spent() - begun
		if n := i + 1; slices.Contains(counts, n) || n == c.Groups {
			floors, ok := p.Floors(s.members, s.slots)
			if !ok {
				return fmt.Errorf("%s has no layers", g.Fabric())
			}
			s.table(r, fmt.Sprintf("%d groups of %d hosts, %s: ", n, members, fabric), floors)
		}
	}
	slices.Sort(times)
	r.addTime(fmt.Sprintf("%d groups of %d hosts, %s: plan, mean processor time", c.Groups, members, fabric), sum/time.Duration(c.Groups), onlineLimit,
		fmt.Sprintf("by the clock 99 %% within %v, the slowest %v",
			times[len(times)*99/100].Round(time.Microsecond), times[len(times)-1].Round(time.Microsecond)))
	return nil
}

// whole returns the bound of a number of trees: they are whole.
func whole(bound float64) float64 { return math.Ceil(bound - 1e-9) }

// limit returns how many times its bound a number of trees may be: where the bound
// is that low, one tree more.
func limit(bound float64) float64 { return max(ratioLimit, (whole(bound)+1)/max(whole(bound), 1)) }

// stream is groups of random hosts.
type stream struct {
	planner *pathsel.Planner
	load    *pathsel.Load
	rng     *rand.Rand
	members [][]topology.NodeID
	slots   []int
}

// next draws a group; windows are of 8 to 64 chunks.
func (s *stream) next(size int) pathsel.Request {
	g := s.planner.Graph()
	chosen := make(map[topology.NodeID]bool, size)
	members := make([]topology.NodeID, 0, size)
	for len(members) < size {
		if h := topology.NodeID(s.rng.IntN(g.Hosts())); !chosen[h] {
			chosen[h] = true
			members = append(members, h)
		}
	}
	req := request(members)
	req.Criterion, req.Slots = pathsel.LeastLoad, 2*(8<<s.rng.IntN(4))
	s.members, s.slots = append(s.members, members), append(s.slots, req.Slots)
	return req
}

// place plans a group of random hosts, and returns how long that took.
func (s *stream) place(size int) (time.Duration, error) {
	req := s.next(size)
	begun := time.Now()
	plan, err := s.planner.Plan(s.planner.Graph().View(), s.load, req)
	if err != nil {
		return 0, err
	}
	s.load.Add(plan.Tree, req.Slots)
	return time.Since(begun), nil
}

// table adds the most loaded resources beside their bounds, and notes those of each
// layer. A group's switches are not the fewest where its tree is a longer one, so
// that CPUs and slots of upper layers have no limit of their own.
func (s *stream) table(r *Report, name string, floors pathsel.Peaks) {
	have := s.load.Peaks()
	for i := range floors.Links { // trees are whole
		floors.Links[i], floors.CPUs[i] = whole(floors.Links[i]), whole(floors.CPUs[i])
	}
	floors.Slots[1] = max(floors.Slots[1], float64(slices.Max(s.slots)))
	for _, x := range []struct {
		what        string
		have, floor []float64
	}{
		{"link between switches", have.Links[1:], floors.Links[1:]},
		{"switch CPU", have.CPUs[1:], floors.CPUs[1:]},
		{"switch's slots", have.Slots[1:], floors.Slots[1:]},
	} {
		most, bound := slices.Max(x.have), slices.Max(x.floor)
		var layers []string
		for i := range x.floor {
			if x.floor[i] > 0 {
				layers = append(layers, fmt.Sprintf("%.0f against %.4g", x.have[i], x.floor[i]))
			}
		}
		r.add(name+"most loaded "+x.what, most/bound, "x the bound", limit(bound), "by layers: "+strings.Join(layers, ", "))
	}
}
