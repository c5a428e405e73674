package pathsel

import (
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/topology"
)

// refuseMember says why a member has no switch to send to.
func (f *subgraph) refuseMember(rank int) *Refusal {
	g, m := f.view.Graph(), f.Members[rank]
	who := fmt.Sprintf("rank %d (%s)", rank, g.Name(m))
	none := &Refusal{Resource: Path, Switch: topology.NoNode, Member: m, Need: 1}
	if !f.view.NodeUp(m) {
		none.text = who + " is down"
		return none
	}
	var nearest *Refusal
	for _, l := range g.Adjacent(m) {
		n := g.Across(l, m)
		if !f.view.LinkUp(l) || f.excludesLink(l) || !g.IsSwitch(n) {
			continue
		}
		if r := f.refuseSwitch(n, f.shortage(n)); nearest == nil || r.nearer(nearest) {
			nearest = r
		}
	}
	if nearest == nil {
		none.text = who + " has no link that is up and not excluded"
		return none
	}
	nearest.Member = m
	nearest.text = who + ": " + nearest.text
	return nearest
}

// nearer reports whether r's switch is nearer to being usable than other's.
func (r *Refusal) nearer(other *Refusal) bool {
	if (r.Resource == Path) != (other.Resource == Path) {
		return other.Resource == Path
	}
	return r.Resource > other.Resource || r.Resource == other.Resource && r.Resource == Slots && r.Free > other.Free
}

// refuseSwitch says what switch n lacks.
func (f *subgraph) refuseSwitch(n topology.NodeID, s shortage) *Refusal {
	r := &Refusal{Resource: s.resource, Switch: n, Member: topology.NoNode, Free: s.free, Need: s.need}
	name := "switch " + f.view.Graph().Name(n)
	switch s.resource {
	case Functions:
		missing := topology.Functions(s.need) &^ topology.Functions(s.free)
		r.text = fmt.Sprintf("%s does not reduce %v (it has %v)", name, missing, topology.Functions(s.free))
	case Types:
		missing := topology.Types(s.need) &^ topology.Types(s.free)
		r.text = fmt.Sprintf("%s does not know the type %v (it has %v)", name, missing, topology.Types(s.free))
	case Protection:
		r.text = name + " takes no packets that are authenticated or encrypted"
	case Speed:
		r.text = name + " reduces nothing: its speed is 0"
	case Slots:
		r.text = fmt.Sprintf("%s has %d of its %d slots free, %d are needed", name, s.free, f.view.Capability(n).Slots, s.need)
	case Chunk:
		r.text = fmt.Sprintf("%s takes chunks of %d bytes, %d are needed", name, s.free, s.need)
	case Children:
		r.text = fmt.Sprintf("%s can serve %d of the %d children that it would have", name, s.free, s.need)
	default:
		r.text = name + " is down"
		if f.excluded[n] || f.idle[n] {
			r.text = name + " is excluded"
		}
	}
	return r
}

// refuseUnreached says what separates the members: of the switches beside those
// that the first member reaches, the one nearest to being usable.
func (f *subgraph) refuseUnreached() *Refusal {
	g := f.view.Graph()
	reached := f.reach(f.member(0))
	members, lost := 0, topology.NoNode
	for rank := range f.Members {
		if slices.ContainsFunc(f.at(f.member(rank)), func(e edge) bool { return reached[e.to] }) {
			members++
		} else if lost == topology.NoNode {
			lost = f.Members[rank]
		}
	}
	var nearest *Refusal
	for i, n := range f.switches {
		if !reached[i] {
			continue
		}
		for _, l := range g.Adjacent(n) {
			m := g.Across(l, n)
			if !g.IsSwitch(m) || f.index[g.SwitchIndex(m)] >= 0 || !f.view.LinkUp(l) || f.excludesLink(l) {
				continue
			}
			if r := f.refuseSwitch(m, f.shortage(m)); nearest == nil || r.nearer(nearest) {
				nearest = r
			}
		}
	}
	apart := fmt.Sprintf("usable switches join %s with %d of %d members, not with %s",
		g.Name(f.Members[0]), members, len(f.Members), g.Name(lost))
	if nearest == nil || nearest.Resource == Path {
		blamed := topology.NoNode
		if nearest != nil {
			blamed, apart = nearest.Switch, apart+"; "+nearest.text
		}
		return &Refusal{Resource: Path, Switch: blamed, Member: lost, Free: members, Need: len(f.Members), text: apart}
	}
	nearest.Member = lost
	nearest.text = apart + "; " + nearest.text
	return nearest
}

// reach returns which switches a point reaches.
func (f *subgraph) reach(point int32) []bool {
	reached := make([]bool, len(f.switches))
	queue := []int32{point}
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		for _, e := range f.at(p) {
			if !reached[e.to] {
				reached[e.to] = true
				queue = append(queue, e.to)
			}
		}
	}
	return reached
}

// refuseChildren says which switch was short of children in the trees tried.
func (s *spanner) refuseChildren() *Refusal {
	if s.crowdedAt == topology.NoNode {
		return s.refuseUnreached()
	}
	return s.refuseSwitch(s.crowdedAt, s.crowded)
}
