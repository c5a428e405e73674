package topology

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// state is an overlay in the simplest form.
type state struct {
	nodeDown []bool
	linkDown []bool
	caps     []Capability
	nodeUse  []float64
	linkUse  []float64
}

func stateOf(g *Graph) *state {
	s := &state{
		nodeDown: make([]bool, g.Nodes()), linkDown: make([]bool, g.Links()), caps: make([]Capability, g.Nodes()),
		nodeUse: make([]float64, g.Nodes()), linkUse: make([]float64, g.Links()),
	}
	for n := range s.caps {
		s.caps[n] = g.Capability(NodeID(n))
	}
	return s
}

func (s *state) clone() *state {
	return &state{
		slices.Clone(s.nodeDown), slices.Clone(s.linkDown), slices.Clone(s.caps), slices.Clone(s.nodeUse), slices.Clone(s.linkUse),
	}
}

func (s *state) apply(c Change) {
	switch c.what {
	case changeNode:
		s.nodeDown[c.node] = !c.up
	case changeLink:
		s.linkDown[c.link] = !c.up
	case changeCapability:
		s.caps[c.node] = c.cap
	case changeNodeUse:
		s.nodeUse[c.node] = c.use
	case changeLinkUse:
		s.linkUse[c.link] = c.use
	}
}

func (s *state) check(t *rapid.T, v View) {
	g := v.Graph()
	var nodes []NodeID
	for n := range NodeID(g.Nodes()) {
		if v.NodeUp(n) == s.nodeDown[n] || v.Capability(n) != s.caps[n] || v.NodeUtilization(n) != s.nodeUse[n] {
			t.Fatalf("%s: up %v, %+v, utilization %v", g.Name(n), v.NodeUp(n), v.Capability(n), v.NodeUtilization(n))
		}
		if s.nodeDown[n] {
			nodes = append(nodes, n)
		}
	}
	var links []LinkID
	for l, link := range g.AllLinks() {
		usable := !s.linkDown[l] && !s.nodeDown[link.Ends[0].Node] && !s.nodeDown[link.Ends[1].Node]
		if v.LinkUp(l) == s.linkDown[l] || v.Usable(l) != usable || v.LinkUtilization(l) != s.linkUse[l] {
			t.Fatalf("%s: up %v, usable %v, utilization %v", g.LinkName(l), v.LinkUp(l), v.Usable(l), v.LinkUtilization(l))
		}
		if s.linkDown[l] {
			links = append(links, l)
		}
	}
	if !slices.Equal(slices.Collect(v.NodesDown()), nodes) || !slices.Equal(slices.Collect(v.LinksDown()), links) {
		t.Fatalf("down: %v %v, want %v %v", slices.Collect(v.NodesDown()), slices.Collect(v.LinksDown()), nodes, links)
	}
}

func drawChange(t *rapid.T, g *Graph) Change {
	node := NodeID(rapid.IntRange(0, g.Nodes()-1).Draw(t, "node"))
	link := LinkID(rapid.IntRange(0, g.Links()-1).Draw(t, "link"))
	use := float64(rapid.IntRange(0, 4).Draw(t, "use")) / 4
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		return NodeState(node, rapid.Bool().Draw(t, "up"))
	case 1:
		return LinkState(link, rapid.Bool().Draw(t, "up"))
	case 2:
		c := DefaultCapability()
		c.Slots -= rapid.IntRange(0, 2).Draw(t, "slots")
		c.Speed = drawSpeed(t)
		return SwitchCapability(g.Switch(rapid.IntRange(0, g.Switches()-1).Draw(t, "switch")), c)
	case 3:
		return NodeUtilization(node, use)
	}
	return LinkUtilization(link, use)
}

func drawSpeed(t *rapid.T) Speed {
	rates := rapid.SampledFrom([]int64{0, 0, NoSpeed, 1, 1500, 12e9, LineRate})
	return Speed{rates.Draw(t, "bytes"), rates.Draw(t, "packets")}
}

// TestOverlayAgainstModel makes snapshots of snapshots, in a tree of versions,
// and holds every one of them against plain copies: the older ones, too, after
// the newer were made.
func TestOverlayAgainstModel(t *testing.T) {
	g := generated(t, "leaf-spine:40,130,3")
	rapid.Check(t, func(t *rapid.T) {
		overlays, states := []*Overlay{NewOverlay(g)}, []*state{stateOf(g)}
		for range rapid.IntRange(1, 5).Draw(t, "snapshots") {
			from := rapid.IntRange(0, len(overlays)-1).Draw(t, "from")
			next := states[from].clone()
			var changes []Change
			for range rapid.IntRange(0, 6).Draw(t, "changes") {
				c := drawChange(t, g)
				changes = append(changes, c)
				next.apply(c)
			}
			o, err := overlays[from].With(changes...)
			if err != nil {
				t.Fatal(err)
			}
			if o != overlays[from] && o.Version() != overlays[from].Version()+1 || o.View().Version() != o.Version() {
				t.Fatalf("version %d after %d", o.Version(), overlays[from].Version())
			}
			overlays, states = append(overlays, o), append(states, next)
		}
		for i, o := range overlays {
			states[i].check(t, o.View())
		}
		states[0].check(t, g.View())
	})
}

func TestOverlayUnchanged(t *testing.T) {
	g := generated(t, "fat-tree:4")
	o := NewOverlay(g)
	same, err := o.With(NodeState(3, true), LinkState(3, true), SwitchCapability(g.Switch(0), DefaultCapability()), NodeUtilization(1, 0))
	if err != nil || same != o {
		t.Errorf("changes that change nothing made version %d, %v", same.Version(), err)
	}
}

func TestOverlayErrors(t *testing.T) {
	g := generated(t, "fat-tree:4")
	o := NewOverlay(g)
	for name, c := range map[string]Change{
		"zero":                   {},
		"no such node":           NodeState(NodeID(g.Nodes()), false),
		"negative node":          NodeState(-1, false),
		"no such link":           LinkState(LinkID(g.Links()), false),
		"negative link":          LinkUtilization(-1, 0.5),
		"host capability":        SwitchCapability(0, DefaultCapability()),
		"no such switch":         SwitchCapability(NodeID(g.Nodes()), DefaultCapability()),
		"negative slots":         SwitchCapability(g.Switch(0), Capability{Slots: -1}),
		"unknown function":       SwitchCapability(g.Switch(0), Capability{Functions: 1 << 31}),
		"unknown type":           SwitchCapability(g.Switch(0), Capability{Types: 1}),
		"switch out of range":    SwitchCapability(g.Switch(0), Capability{Speed: Speed{Packets: LineRate + 1}}),
		"utilization above 1":    NodeUtilization(0, 1.5),
		"negative utilization":   LinkUtilization(0, -0.5),
		"utilization of a NaN":   NodeUtilization(0, math.NaN()),
		"utilization of nowhere": NodeUtilization(NodeID(g.Nodes()), 0.5),
	} {
		if got, err := o.With(NodeState(0, false), c); !errors.Is(err, ErrChange) || got != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !o.View().NodeUp(0) {
		t.Error("a change beside one that failed was made")
	}
}
