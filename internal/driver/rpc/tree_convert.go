package rpc

import (
	"math"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/pathsel"
)

// purpose leaves out one of which nothing is known.
func purpose(p pathsel.Purpose) *pb.Purpose {
	if p == (pathsel.Purpose{}) {
		return nil
	}
	m := &pb.Purpose{
		Collective: pb.Collective(p.Collective), Bytes: uint64(p.Bytes), Criterion: pb.Criterion(p.Criterion),
	}
	for c, weight := range p.Weights {
		if weight != 0 {
			m.Weights = append(m.Weights, &pb.Weight{Criterion: pb.Criterion(c), Weight: weight})
		}
	}
	return m
}

// purpose reads one that is valid.
func (r *reader) purpose(m *pb.Purpose) pathsel.Purpose {
	var p pathsel.Purpose
	if _, known := pb.Collective_name[int32(m.GetCollective())]; !known {
		r.fail("purpose.collective", "%v is not known to this version", m.GetCollective())
		return p
	}
	if m.GetBytes() > math.MaxInt64 {
		r.fail("purpose.bytes", "%d", m.GetBytes())
		return p
	}
	p.Collective, p.Bytes = pathsel.Collective(m.GetCollective()), int64(m.GetBytes())
	p.Criterion = r.criterion("purpose.criterion", m.GetCriterion())
	for _, w := range m.GetWeights() {
		p.Weights[r.criterion("purpose.weights.criterion", w.GetCriterion())] = w.GetWeight()
	}
	if err := p.Validate(); err != nil {
		r.fail("purpose", "%v", err)
		return pathsel.Purpose{}
	}
	return p
}

func (r *reader) criterion(field string, c pb.Criterion) pathsel.Criterion {
	if _, known := pb.Criterion_name[int32(c)]; !known {
		r.fail(field, "%v is not known to this version", c)
		return 0
	}
	return pathsel.Criterion(c)
}

func treeState(t TreeState) *pb.TreeState {
	return &pb.TreeState{
		Epoch: t.Epoch, Stage: stages[t.Stage], Window: t.Window, Cost: cost(t.Figures), Reason: t.Reason,
		Criterion: pb.Criterion(t.Criterion), Because: t.Because, Method: t.Method, Exact: t.Exact,
		OverSwitches: duration(t.Forecast.Switches), OverHosts: duration(t.Forecast.Hosts),
		Switches: each(t.Switches, func(v TreeVertex) *pb.TreeVertex {
			return &pb.TreeVertex{Switch: v.Switch, Parent: int32(v.Parent), Links: v.Links, Reducer: reducer(v.Reducer)}
		}),
		Members: each(t.Members, func(l TreeLeaf) *pb.TreeLeaf {
			return &pb.TreeLeaf{Host: l.Host, Vertex: uint32(l.Vertex), Links: l.Links, Rail: l.Rail}
		}),
		RunnersUp: each(t.RunnersUp, func(a Alternative) *pb.Alternative {
			return &pb.Alternative{Root: a.Root, Method: a.Method, Cost: cost(a.Figures), Lost: a.Lost}
		}),
	}
}

// treeState reads a tree whose indices are valid: parents before children.
func (r *reader) treeState(m *pb.TreeState) TreeState {
	t := TreeState{
		Epoch: m.GetEpoch(), Stage: keyOf(r, "trees.stage", stages, m.GetStage()), Window: m.GetWindow(),
		Figures: r.cost(m.GetCost()), Reason: m.GetReason(),
		Criterion: r.criterion("trees.criterion", m.GetCriterion()), Because: m.GetBecause(), Method: m.GetMethod(), Exact: m.GetExact(),
		Forecast: pathsel.Forecast{
			Switches: r.duration("trees.over_switches", m.GetOverSwitches()), Hosts: r.duration("trees.over_hosts", m.GetOverHosts()),
		},
	}
	for i, v := range m.GetSwitches() {
		if v.GetParent() < -1 || int(v.GetParent()) >= i || (v.GetParent() < 0) != (i == 0) {
			r.fail("trees.switches.parent", "switch %d has the parent %d", i, v.GetParent())
		}
		t.Switches = append(t.Switches, TreeVertex{v.GetSwitch(), int(v.GetParent()), v.GetLinks(), r.reducer(v.GetReducer())})
	}
	for i, l := range m.GetMembers() {
		if int(l.GetVertex()) >= len(t.Switches) {
			r.fail("trees.members.vertex", "rank %d is beneath switch %d of %d", i, l.GetVertex(), len(t.Switches))
		}
		t.Members = append(t.Members, TreeLeaf{l.GetHost(), int(l.GetVertex()), l.GetLinks(), l.GetRail()})
	}
	for _, a := range m.GetRunnersUp() {
		t.RunnersUp = append(t.RunnersUp, Alternative{a.GetRoot(), a.GetMethod(), r.cost(a.GetCost()), a.GetLost()})
	}
	return t
}

func cost(f pathsel.Figures) *pb.TreeCost {
	return &pb.TreeCost{
		Hops: uint32(f.Hops), Depth: uint32(f.Depth), Load: uint32(f.Use), Latency: duration(f.Latency),
		Bandwidth: uint64(f.Bandwidth), Price: f.Price, Share: f.Share, Speed: uint64(f.Speed),
	}
}

func (r *reader) cost(m *pb.TreeCost) pathsel.Figures {
	if m.GetBandwidth() > math.MaxInt64 {
		r.fail("cost.bandwidth", "%d bit/s", m.GetBandwidth())
	}
	return pathsel.Figures{
		Hops: r.int("cost.hops", m.GetHops()), Depth: r.int("cost.depth", m.GetDepth()), Use: r.int("cost.load", m.GetLoad()),
		Latency: r.duration("cost.latency", m.GetLatency()), Bandwidth: int64(m.GetBandwidth()),
		Price: r.amount("cost.price", m.GetPrice()), Share: r.amount("cost.share", m.GetShare()),
		Speed: int64(min(m.GetSpeed(), math.MaxInt64)),
	}
}
