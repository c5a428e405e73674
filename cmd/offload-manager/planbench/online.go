package planbench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// online plans many groups one after another, none of them moved later, and
// holds what they load against what any placement must load.
func online(ctx context.Context, c Config, r *Report, progress func(string)) error {
	g, err := fabric(c.Online)
	if err != nil {
		return err
	}
	p, err := pathsel.NewPlanner(g, pathsel.Config{})
	if err != nil {
		return err
	}
	s := &stream{planner: p, load: pathsel.NewLoad(g), rng: rand.New(rand.NewPCG(c.Seed, 0))}
	times := make([]time.Duration, c.Groups)
	for i := range times {
		if i%1000 == 999 {
			progress(fmt.Sprintf("%d groups planned", i+1))
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		req := s.next(c.Members)
		begun := time.Now()
		plan, err := p.Plan(g.View(), s.load, req)
		if err != nil {
			return err
		}
		s.load.Add(plan.Tree, req.Slots)
		times[i] = time.Since(begun)
	}
	var sum time.Duration
	for _, t := range times {
		sum += t
	}
	slices.Sort(times)
	name := fmt.Sprintf("%d groups of %d hosts, k=%d: ", c.Groups, c.Members, c.Online)
	r.addTime(name+"plan, mean", sum/time.Duration(c.Groups), onlineLimit, fmt.Sprintf("99 %% within %v, the slowest %v",
		times[len(times)*99/100].Round(time.Microsecond), times[len(times)-1].Round(time.Microsecond)))
	floors, ok := p.Floors(s.members, s.slots)
	if !ok {
		return fmt.Errorf("%s has no layers", g.Fabric())
	}
	s.table(r, name, floors)
	return nil
}

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

// least returns the fewest slots that a group reserves on a switch.
func (s *stream) least() int { return slices.Min(s.slots) }

// table adds the most loaded resources beside their bounds: of all layers
// together with the limit, and of each layer.
func (s *stream) table(r *Report, name string, floors pathsel.Peaks) {
	g := s.planner.Graph()
	have := s.load.Peaks()
	// Trees are whole, so the most loaded link and CPU have a whole number.
	for i := range floors.Links {
		floors.Links[i], floors.CPUs[i] = math.Ceil(floors.Links[i]-1e-9), math.Ceil(floors.CPUs[i]-1e-9)
		if floors.CPUs[i] > 0 {
			floors.Slots[i] = max(floors.Slots[i], float64(s.least()))
		}
	}
	for _, x := range []struct {
		what        string
		have, floor []float64
	}{
		{"link between switches", have.Links[1:], floors.Links[1:]},
		{"switch CPU", have.CPUs[1:], floors.CPUs[1:]},
		{"switch's slots", have.Slots[1:], floors.Slots[1:]},
	} {
		most, bound := slices.Max(x.have), slices.Max(x.floor)
		r.add(name+"most loaded "+x.what, most/bound, "x the bound", ratioLimit, fmt.Sprintf("%.0f against %.4g", most, bound))
		for i := range x.floor {
			if x.floor[i] > 0 {
				r.add(fmt.Sprintf("  %s, layer %d of %d", x.what, i+1, g.Layers()-1), x.have[i]/x.floor[i], "x the bound", ratioLimit,
					fmt.Sprintf("%.0f against %.4g", x.have[i], x.floor[i]))
			}
		}
	}
}
