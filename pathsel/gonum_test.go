package pathsel

import (
	"math/rand/v2"
	"testing"
	"time"

	"gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/path"
	"gonum.org/v1/gonum/graph/simple"

	"github.com/tributary-fabric/tributary/topology"
)

// fabricGraph is a view's usable nodes and links as gonum sees graphs, without
// a copy: a link weighs its latency and that of the switch at its far end. No
// path leads through a host.
type fabricGraph struct {
	view topology.View
	hop  time.Duration
}

var _ graph.Weighted = fabricGraph{}

func (f fabricGraph) Node(id int64) graph.Node {
	if n := topology.NodeID(id); !f.view.Graph().HasNode(n) || !f.view.NodeUp(n) {
		return nil
	}
	return simple.Node(id)
}

func (f fabricGraph) Nodes() graph.Nodes {
	n := &neighbours{at: -1}
	for id := range f.view.Graph().Nodes() {
		if f.view.NodeUp(topology.NodeID(id)) {
			n.list = append(n.list, int64(id))
		}
	}
	return n
}

func (f fabricGraph) From(id int64) graph.Nodes {
	n, g := &neighbours{at: -1}, f.view.Graph()
	for _, l := range g.Adjacent(topology.NodeID(id)) {
		if f.view.Usable(l) {
			n.list = append(n.list, int64(g.Across(l, topology.NodeID(id))))
		}
	}
	return n
}

func (f fabricGraph) HasEdgeBetween(x, y int64) bool {
	_, ok := f.Weight(x, y)
	return ok && x != y
}

func (f fabricGraph) Edge(x, y int64) graph.Edge { return f.WeightedEdge(x, y) }

func (f fabricGraph) WeightedEdge(x, y int64) graph.WeightedEdge {
	w, _ := f.Weight(x, y)
	return simple.WeightedEdge{F: simple.Node(x), T: simple.Node(y), W: w}
}

func (f fabricGraph) Weight(x, y int64) (float64, bool) {
	if x == y {
		return 0, true
	}
	g := f.view.Graph()
	for _, l := range g.Adjacent(topology.NodeID(x)) {
		if f.view.Usable(l) && g.Across(l, topology.NodeID(x)) == topology.NodeID(y) {
			return float64(g.Link(l).Latency + f.hop), true
		}
	}
	return 0, false
}

// neighbours iterates over nodes.
type neighbours struct {
	list []int64
	at   int
}

func (n *neighbours) Next() bool       { n.at++; return n.at < len(n.list) }
func (n *neighbours) Len() int         { return len(n.list) - n.at - 1 }
func (n *neighbours) Reset()           { n.at = -1 }
func (n *neighbours) Node() graph.Node { return simple.Node(n.list[n.at]) }

// TestLatencyAgainstGonum: of the switches as roots, none has all members nearer
// in time than the one that a plan of least latency has, by gonum's Dijkstra.
func TestLatencyAgainstGonum(t *testing.T) {
	for _, g := range []*topology.Graph{uneven(t), railed(t), fabric(t, "four-switches:3"), fabric(t, "fat-tree:4")} {
		p, rng := planner(t, g), rand.New(rand.NewPCG(71, 72))
		for range 40 {
			var changes []topology.Change
			for l, link := range g.AllLinks() {
				if g.IsSwitch(link.Ends[0].Node) && rng.IntN(12) == 0 {
					changes = append(changes, topology.LinkState(l, false))
				}
			}
			view := changed(t, g, changes...)
			req := usual(randomGroup(rng, g, 9))
			req.Criterion = LeastLatency
			plan, err := p.Plan(view, nil, req)
			if err != nil {
				continue
			}
			f := fabricGraph{view, p.cfg.Model.SwitchHop}
			best := -1.0
			for i := range g.Switches() {
				from := path.DijkstraFrom(f.Node(int64(g.Switch(i))), switchesOnly{f, int64(g.Switch(i))})
				far := 0.0
				for _, m := range req.Members {
					far = max(far, from.WeightTo(int64(m)))
				}
				if best < 0 || far < best {
					best = far
				}
			}
			if float64(plan.Figures.Latency) != best {
				t.Fatalf("%s: latency %v by %v, gonum has %v", g.Fabric(), plan.Figures.Latency, plan.Method, time.Duration(best))
			}
		}
	}
}

// switchesOnly is a fabricGraph in which no path goes on from a host.
type switchesOnly struct {
	fabricGraph
	root int64
}

func (s switchesOnly) From(id int64) graph.Nodes {
	if s.view.Graph().IsHost(topology.NodeID(id)) {
		return &neighbours{at: -1}
	}
	return s.fabricGraph.From(id)
}
