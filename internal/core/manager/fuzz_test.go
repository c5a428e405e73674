package manager

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// bytesReader gives small numbers from a fuzzer's bytes, and then zeros.
type bytesReader []byte

func (r *bytesReader) next(below int) int {
	if len(*r) == 0 {
		return 0
	}
	n := int((*r)[0]) % below
	*r = (*r)[1:]
	return n
}

// decode makes an input of any kind, with any fields that a few bytes can say:
// answers nobody asked for, plans that are no trees, ranks that do not exist.
func decode(r *bytesReader, graph *topology.Graph, lastPlan PlanRequest) Input {
	group, rank, epoch := uint32(r.next(4)), uint32(r.next(5)), uint32(r.next(20))
	node := graph.Name(topology.NodeID(r.next(graph.Nodes()+2) - 1))
	addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(rank)}), uint16(r.next(3)))
	lives := uint64(r.next(3))
	owner := []string{"", "h0", "h1"}[r.next(3)]
	switch r.next(16) {
	case 14:
		return Turn{Req: uint64(r.next(8)), Owner: owner, Cost: r.next(9) - 2}
	case 15:
		return TurnOver{Req: uint64(r.next(8))}
	case 0:
		in := Create{Name: string(rune('a' + r.next(4))), ChunkBytes: 512 * r.next(3), Window: 1 << r.next(9), Owner: owner, Secret: [32]byte{byte(r.next(2))}}
		if r.next(2) == 1 {
			in.Bundle = Bundle{Name: "b", Kind: BundleKind(r.next(4)), Index: r.next(4) - 1, Count: 1 + r.next(3)}
		}
		for range r.next(5) {
			in.Members = append(in.Members, graph.Name(topology.NodeID(r.next(graph.Hosts()+1))))
		}
		return in
	case 1:
		in := Watch{Group: group, Rank: rank, DataAddr: addr, Proven: addr.Addr(), Stream: uint64(r.next(8)), Entered: epoch, OnlyRails: r.next(2) == 1}
		for range r.next(3) {
			in.Rails = append(in.Rails, Rail{Name: "r", Address: addr.Addr(), Fault: "no carrier"[:10*r.next(2)]})
		}
		return in
	case 2:
		return Unwatch{Group: group, Rank: rank, Stream: uint64(r.next(8)), Over: r.next(4) == 0}
	case 3:
		return Planned{Group: group, Plan: uint64(r.next(8)), Err: errors.New("no")}
	case 4:
		in := Planned{Group: lastPlan.Group, Plan: lastPlan.Plan}
		in.Chosen, in.Err = planFor(graph, graph.View(), &lastPlan)
		if r.next(4) == 0 && in.Err == nil {
			in.Chosen.Tree.Leaves = in.Chosen.Tree.Leaves[1:]
		}
		return in
	case 5, 6:
		kind := agent.ReplyKind(r.next(7))
		reply := agent.Reply{Incarnation: lives, Kind: kind, Group: group, Epoch: epoch, Addr: addr}
		if r.next(2) == 1 {
			reply.Refusal = &agent.Refusal{Cause: agent.Cause(r.next(15)), Free: r.next(200)}
		}
		return Answer{Switch: node, Reply: reply}
	case 7, 8:
		in := SwitchUp{Switch: node, Incarnation: lives, Capability: topology.DefaultCapability(), Draining: r.next(8) == 1, Outlives: r.next(2) == 1}
		for range r.next(3) {
			in.Holds = append(in.Holds, agent.Hold{Group: group, Epoch: uint32(r.next(20)), Window: 8, Committed: r.next(2) == 1})
		}
		return in
	case 9:
		return SwitchDown{Switch: node}
	case 10:
		return Ended{Switch: node, End: agent.Ended{Incarnation: lives, Group: group, Epoch: epoch}}
	case 11:
		return Report{Group: group, Rank: rank, Entered: epoch << (r.next(2) * 27), Transport: Transport(r.next(4)), Lost: uint32(r.next(20)), Silent: r.next(2) == 1}
	case 12:
		return Drain{Switch: node, On: r.next(2) == 1}
	}
	if r.next(4) == 0 {
		return Release{Group: group}
	}
	if r.next(4) == 0 {
		s := shape{without: map[string]bool{}, moved: map[int]int{r.next(6): r.next(3)}, turn: r.next(6), spines: r.next(2)}
		for range r.next(4) {
			s.without[[]string{"h0", "h1", "h2", "leaf-0", "leaf-1", "spine-0", "spine-1", "leaf-0+spine-0"}[r.next(8)]] = true
		}
		return Redrawn{View: s.graph().View(), Grown: r.next(2) == 0}
	}
	if r.next(4) == 0 {
		return Unstored{Seq: uint64(r.next(200)), Err: errFull}
	}
	return Stored{Seq: uint64(r.next(200))}
}

// playRaw gives a manager what data says, and answers, on the way, as many of
// its requests as data wants. It returns the first broken invariant.
func playRaw(graph *topology.Graph, data []byte) error {
	c := must(New(graph, smallConfig()))
	var out Output
	r := bytesReader(data)
	now, plan := core.Time(0), PlanRequest{}
	for len(r) > 0 {
		var batch []Input
		for range 1 + r.next(3) {
			batch = append(batch, decode(&r, graph, plan))
		}
		// Its own requests are answered as they should be, or the interesting
		// states would hardly be met.
		obey := r.next(4) > 0
		now = now.Add(time.Duration(r.next(8)) * 100 * time.Millisecond)
		for round := 0; round < 8; round++ {
			out.Reset()
			c.Step(now, batch, &out)
			if err := c.check(); err != nil {
				return err
			}
			batch = nil
			if len(out.Plans) > 0 {
				plan = out.Plans[len(out.Plans)-1]
			}
			if obey {
				batch = obedient(c, &out)
			}
			if len(batch) == 0 {
				break
			}
		}
	}
	return nil
}

// planFor makes a plan in an empty fabric.
func planFor(graph *topology.Graph, view topology.View, r *PlanRequest) (pathsel.Plan, error) {
	p := must(pathsel.NewPlanner(graph, pathsel.Config{Work: 1 << 14}))
	return p.Plan(view, nil, r.Request)
}

// obedient answers everything as it should be.
func obedient(c *Core, out *Output) []Input {
	return obedientTo(c, out, must(pathsel.NewPlanner(c.graph, pathsel.Config{Work: 1 << 14})))
}

func obedientTo(c *Core, out *Output, planner *pathsel.Planner) []Input {
	var batch []Input
	for _, p := range out.Plans {
		plan, err := planner.Plan(c.view, nil, p.Request)
		batch = append(batch, Planned{Group: p.Group, Plan: p.Plan, Chosen: plan, Err: err})
	}
	if n := len(out.Persist); n > 0 {
		batch = append(batch, Stored{Seq: out.Persist[n-1].Seq})
	}
	answer := func(name string, kind agent.ReplyKind, incarnation uint64, group, epoch uint32) {
		n, _ := c.graph.Lookup(name)
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1 + byte(n>>16), byte(n >> 8), byte(n)}), 4000)
		batch = append(batch, Answer{Switch: name, Reply: agent.Reply{
			Incarnation: incarnation, Kind: kind, Group: group, Epoch: epoch, Addr: addr,
		}})
	}
	for _, m := range out.Prepares {
		answer(m.Switch, agent.Prepared, m.Incarnation, m.Group, m.Epoch)
	}
	for _, m := range out.Commits {
		answer(m.Switch, agent.Committed, m.Incarnation, m.Config.Group, m.Config.Epoch)
	}
	for _, m := range out.Removes {
		answer(m.Switch, agent.Removed, m.Incarnation, m.Group, m.Epoch)
	}
	return batch
}

func FuzzInputs(f *testing.F) {
	graph := smallFabric()
	f.Add([]byte("a fabric of five switches and six hosts"))
	f.Add([]byte{0, 0, 0, 0, 7, 0, 1, 7, 0, 0, 0, 0, 0, 0, 0, 8, 0, 1, 7, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 7, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 2000 {
			data = data[:2000]
		}
		if err := playRaw(graph, data); err != nil {
			t.Fatal(err)
		}
	})
}
