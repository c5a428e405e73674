package steiner

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// drawn returns a problem of up to 10 nodes, connected or not, with parallel
// edges, and with up to the given number of edges and terminals. The limits
// come from those given, if any.
func drawn(t *rapid.T, edges, terminals int, limits []int32) Problem {
	nodes := rapid.IntRange(2, 10).Draw(t, "nodes")
	node := rapid.Int32Range(0, int32(nodes-1))
	var ends [][2]int32
	if rapid.Bool().Draw(t, "connected") {
		for v := int32(1); v < int32(nodes); v++ {
			ends = append(ends, [2]int32{rapid.Int32Range(0, v-1).Draw(t, "to"), v})
		}
	}
	for range rapid.IntRange(0, max(0, edges-len(ends))).Draw(t, "more") {
		if u, v := node.Draw(t, "u"), node.Draw(t, "v"); u != v {
			ends = append(ends, [2]int32{u, v})
		}
	}
	g, err := NewGraph(nodes, ends)
	if err != nil {
		t.Fatal(err)
	}
	p := Problem{Graph: g, Cost: make([]float64, len(ends))}
	cost := rapid.Custom(func(t *rapid.T) float64 { return float64(rapid.IntRange(0, 9).Draw(t, "whole")) })
	if rapid.Bool().Draw(t, "fractions") {
		cost = rapid.Float64Range(0, 3)
	}
	for e := range p.Cost {
		p.Cost[e] = cost.Draw(t, "cost")
		if rapid.IntRange(0, 15).Draw(t, "forbid") == 0 {
			p.Cost[e] = math.Inf(1)
		}
	}
	p.Terminals = rapid.SliceOfNDistinct(node, 1, min(nodes, terminals), rapid.ID).Draw(t, "terminals")
	if limits != nil {
		p.Limit = rapid.SliceOfN(rapid.SampledFrom(limits), nodes, nodes).Draw(t, "limits")
	}
	return p
}

// cheapest returns the cost of the cheapest set of edges that Check takes, by
// trying all of them.
func cheapest(p Problem) (cost float64, found bool) {
	best := math.Inf(1)
	for set := range 1 << p.Graph.Edges() {
		total := 0.0
		var edges []int32
		for e := range int32(p.Graph.Edges()) {
			if set>>e&1 == 1 {
				edges = append(edges, e)
				total += p.Cost[e]
			}
		}
		if total < best && Check(p, edges) == nil {
			best = total
		}
	}
	return best, !math.IsInf(best, 1)
}

// near says whether two costs are equal but for rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(a)) }

func chain(t *testing.T, nodes int) *Graph {
	t.Helper()
	var ends [][2]int32
	for v := int32(1); v < int32(nodes); v++ {
		ends = append(ends, [2]int32{v - 1, v})
	}
	g, err := NewGraph(nodes, ends)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestMalformedProblems(t *testing.T) {
	g := chain(t, 3)
	good := func() Problem {
		return Problem{Graph: g, Cost: []float64{1, 2}, Limit: []int32{1, 2, 1}, Terminals: []int32{0, 2}}
	}
	for name, spoil := range map[string]func(p *Problem){
		"no graph":             func(p *Problem) { p.Graph = nil },
		"a cost too few":       func(p *Problem) { p.Cost = p.Cost[:1] },
		"a negative cost":      func(p *Problem) { p.Cost[0] = -1 },
		"a cost of no number":  func(p *Problem) { p.Cost[1] = math.NaN() },
		"a limit too many":     func(p *Problem) { p.Limit = []int32{1, 1, 1, 1} },
		"a negative limit":     func(p *Problem) { p.Limit[2] = -1 },
		"no terminal":          func(p *Problem) { p.Terminals = nil },
		"a terminal twice":     func(p *Problem) { p.Terminals = []int32{2, 2} },
		"a terminal elsewhere": func(p *Problem) { p.Terminals = []int32{3} },
	} {
		t.Run(name, func(t *testing.T) {
			p := good()
			if _, err := Solve(p, Options{}); err != nil {
				t.Fatalf("before: %v", err)
			}
			spoil(&p)
			for how, err := range map[string]error{
				"Validate": p.Validate(), "Solve": errOf(Solve(p, Options{})),
			} {
				if !errors.Is(err, ErrProblem) {
					t.Errorf("%s: %v", how, err)
				}
			}
		})
	}
}

func errOf[T any](_ T, err error) error { return err }

func TestMalformedGraphsAndOptions(t *testing.T) {
	for _, ends := range [][2]int32{{0, 0}, {0, 2}, {-1, 0}} {
		if _, err := NewGraph(2, [][2]int32{ends}); !errors.Is(err, ErrProblem) {
			t.Errorf("edge %v: %v", ends, err)
		}
	}
	p := Problem{Graph: chain(t, 2), Cost: []float64{1}, Terminals: []int32{0, 1}}
	if _, err := Solve(p, Options{Budget: -1}); !errors.Is(err, ErrProblem) {
		t.Errorf("a budget below zero: %v", err)
	}
}

func TestTerminalsApart(t *testing.T) {
	p := Problem{Graph: chain(t, 3), Cost: []float64{1, 1}, Terminals: []int32{0, 2}}
	for name, spoil := range map[string]func(p *Problem){
		"an edge forbidden":          func(p *Problem) { p.Cost = []float64{1, math.Inf(1)} },
		"a node forbidden":           func(p *Problem) { p.Limit = []int32{1, 0, 1} },
		"a terminal forbidden":       func(p *Problem) { p.Limit = []int32{0, 2, 1} },
		"a leaf between":             func(p *Problem) { p.Limit = []int32{1, 1, 1} },
		"a terminal of one edge":     func(p *Problem) { p.Limit, p.Terminals = []int32{1, 1, 1}, []int32{0, 1, 2} },
		"two pairs of leaves, apart": func(p *Problem) { p.Graph, p.Terminals = pairs(t), []int32{0, 1, 2, 3} },
	} {
		t.Run(name, func(t *testing.T) {
			p := p
			spoil(&p)
			if _, err := Solve(p, Options{}); !errors.Is(err, ErrDisconnected) {
				t.Error(err)
			}
			if is, some := optimum(p); some {
				t.Errorf("there is a tree of %v", is)
			}
		})
	}
}

func pairs(t *testing.T) *Graph {
	g, err := NewGraph(4, [][2]int32{{0, 1}, {2, 3}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestCheckRefuses(t *testing.T) {
	g, err := NewGraph(5, [][2]int32{{0, 1}, {1, 2}, {2, 0}, {2, 3}, {3, 4}, {0, 1}})
	if err != nil {
		t.Fatal(err)
	}
	p := Problem{
		Graph: g, Cost: []float64{1, 1, 1, 1, 1, math.Inf(1)},
		Limit: []int32{2, 2, 2, 2, 2}, Terminals: []int32{0, 2},
	}
	if err := Check(p, []int32{0, 1}); err != nil {
		t.Fatal(err)
	}
	for name, edges := range map[string][]int32{
		"not spanning":     {0},
		"a circle":         {0, 1, 2},
		"a useless leaf":   {2, 3},
		"a forbidden edge": {5, 1},
		"a limit":          {0, 1, 3},
		"no edge":          {0, 9},
		"a part apart":     {2, 4},
	} {
		if err := Check(p, edges); !errors.Is(err, ErrTree) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
