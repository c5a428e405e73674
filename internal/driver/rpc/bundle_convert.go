package rpc

import (
	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/internal/core/manager"
)

var bundleKinds = map[manager.BundleKind]pb.BundleKind{
	manager.NoBundle: pb.BundleKind_BUNDLE_KIND_UNSPECIFIED, manager.Stripes: pb.BundleKind_BUNDLE_KIND_STRIPES,
	manager.Parts: pb.BundleKind_BUNDLE_KIND_PARTS,
}

// bundle leaves none out.
func bundle(b manager.Bundle) *pb.Bundle {
	if b == (manager.Bundle{}) {
		return nil
	}
	return &pb.Bundle{Name: b.Name, Kind: bundleKinds[b.Kind], Index: uint32(b.Index), Count: uint32(b.Count), PerRail: b.PerRail}
}

func (r *reader) bundle(m *pb.Bundle) manager.Bundle {
	return manager.Bundle{
		Name: m.GetName(), Kind: keyOf(r, "bundle.kind", bundleKinds, m.GetKind()),
		Index: r.int("bundle.index", m.GetIndex()), Count: r.int("bundle.count", m.GetCount()), PerRail: m.GetPerRail(),
	}
}

func groupPlan(p GroupPlan) *pb.PlanGroupResponse {
	return &pb.PlanGroupResponse{Fewer: problem(p.Fewer), Groups: each(p.Groups, func(g PlannedGroup) *pb.PlannedGroup {
		ranks := each(g.Ranks, func(rank int) uint32 { return uint32(rank) })
		return &pb.PlannedGroup{Root: g.Root, Cost: cost(g.Figures), Ranks: ranks}
	})}
}

// groupPlan reads a plan for so many members: every rank is in one part, or there
// are no parts.
func (r *reader) groupPlan(m *pb.PlanGroupResponse, members int) GroupPlan {
	p := GroupPlan{Fewer: unproblem(m.GetFewer())}
	seen, n := make([]bool, members), 0
	for _, g := range m.GetGroups() {
		planned := PlannedGroup{Root: g.GetRoot(), Figures: r.cost(g.GetCost())}
		for i, rank := range g.GetRanks() {
			if uint64(rank) >= uint64(members) || seen[rank] || i > 0 && rank < g.GetRanks()[i-1] {
				r.fail("groups.ranks", "rank %d of %d members is not there, or twice, or out of order", rank, members)
				return p
			}
			seen[rank] = true
			n++
			planned.Ranks = append(planned.Ranks, int(rank))
		}
		p.Groups = append(p.Groups, planned)
	}
	if len(p.Groups) == 0 || n > 0 && n < members {
		r.fail("groups", "%d groups, whose parts have %d of %d members", len(p.Groups), n, members)
	}
	return p
}
