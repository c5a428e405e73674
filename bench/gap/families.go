package gap

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/tributary-fabric/tributary/internal/planning/steiner"
)

// Random returns problems like series B to E of SteinLib (OR-Library): sparse
// random graphs of 50 to 2,500 nodes, 1.25 to 5 edges a node, costs of 1 to 10,
// and 5 nodes to half of them terminals.
func Random() (all []Case) {
	for _, size := range []struct{ nodes, edges, terminals int }{
		{50, 63, 9}, {75, 150, 38}, {100, 200, 50},
		{500, 625, 83}, {500, 1000, 5}, {500, 1000, 125}, {500, 2500, 250},
		{1000, 1250, 167}, {1000, 2000, 10}, {1000, 5000, 250}, {1000, 5000, 500},
		{2500, 3125, 417}, {2500, 5000, 10}, {2500, 12500, 625},
	} {
		name := fmt.Sprintf("random/n=%d/m=%d/t=%d", size.nodes, size.edges, size.terminals)
		r := seeded(name)
		ends := connected(r, size.nodes, size.edges)
		all = append(all, Case{Name: name, Problem: drawn(r, size.nodes, ends, size.terminals, func() float64 { return float64(1 + r.IntN(10)) })})
	}
	return all
}

// Incidence returns problems like series I of SteinLib (Duin): random graphs of
// 80 to 640 nodes in which an edge costs about 100, and 100 more for each of its
// ends that is a terminal, so that reductions help little.
func Incidence() (all []Case) {
	for _, size := range []struct{ nodes, edges, terminals int }{
		{80, 120, 6}, {80, 350, 8}, {80, 160, 20}, {160, 240, 12}, {160, 812, 7}, {160, 320, 40},
		{320, 480, 8}, {320, 1845, 8}, {320, 640, 34}, {640, 960, 9}, {640, 4135, 9}, {640, 1280, 50},
	} {
		name := fmt.Sprintf("incidence/n=%d/m=%d/t=%d", size.nodes, size.edges, size.terminals)
		r := seeded(name)
		terminal := make([]bool, size.nodes)
		p := drawn(r, size.nodes, connected(r, size.nodes, size.edges), size.terminals, func() float64 { return 100 })
		for _, v := range p.Terminals {
			terminal[v] = true
		}
		for e, ends := range p.Graph.Ends() {
			for _, v := range ends {
				if terminal[v] {
					p.Cost[e] += 100
				}
			}
			p.Cost[e] = math.Round(p.Cost[e] + 5*r.NormFloat64())
		}
		all = append(all, Case{Name: name, Problem: p})
	}
	return all
}

// Covers returns problems like series PUC of SteinLib, small enough to be solved
// exactly: words of a code whose terminals are drawn (cc), and two sides of
// which one is terminals (bip); of equal costs and of costs of 100 to 110.
func Covers() (all []Case) {
	for _, equal := range []bool{true, false} {
		for _, size := range []struct{ letters, length, terminals int }{{2, 6, 12}, {4, 3, 8}, {3, 5, 11}, {8, 3, 10}, {2, 9, 10}} {
			name := fmt.Sprintf("cc/q=%d/n=%d/t=%d/equal=%v", size.letters, size.length, size.terminals, equal)
			r := seeded(name)
			nodes, ends := words(size.letters, size.length)
			all = append(all, Case{Name: name, Problem: drawn(r, nodes, ends, size.terminals, nearly(r, equal))})
		}
		for _, size := range []struct{ terminals, others, degree int }{{11, 100, 15}, {12, 200, 20}} {
			name := fmt.Sprintf("bip/t=%d/s=%d/d=%d/equal=%v", size.terminals, size.others, size.degree, equal)
			r := seeded(name)
			var ends [][2]int32
			for t := range int32(size.terminals) {
				for _, s := range r.Perm(size.others)[:size.degree] {
					ends = append(ends, [2]int32{t, int32(size.terminals + s)})
				}
			}
			p := drawn(r, size.terminals+size.others, ends, 1, nearly(r, equal))
			p.Terminals = p.Terminals[:0]
			for t := range int32(size.terminals) {
				p.Terminals = append(p.Terminals, t)
			}
			all = append(all, Case{Name: name, Problem: p})
		}
	}
	return all
}

// Hypercube returns hcNu of series PUC (Rosseti, Poggi de Aragão, Ribeiro, Uchoa
// and Werneck, 2001): the hypercube of that many dimensions, all costs 1, half of
// its nodes terminals, no two of them neighbours. The floor is the least cost
// that is known; up to 7 dimensions it is the optimum.
func Hypercube(dimensions int) Case {
	nodes, ends := words(2, dimensions)
	p := drawn(seeded("hc"), nodes, ends, 1, func() float64 { return 1 })
	p.Terminals = p.Terminals[:0]
	for v := range int32(nodes) {
		if bits.OnesCount32(uint32(v))%2 == 0 {
			p.Terminals = append(p.Terminals, v)
		}
	}
	known := map[int]float64{6: 39, 7: 77, 8: 148, 9: 292, 10: 575}
	return Case{Name: fmt.Sprintf("hc%du", dimensions), Problem: p, Floor: known[dimensions]}
}

// FewTerminals returns problems like track 1 of PACE 2018, of at most 11
// terminals: grids of 400 to 3,600 nodes with holes, and random graphs of 500 to
// 2,000 nodes.
func FewTerminals() (all []Case) {
	for i, width := range []int{20, 30, 40, 50, 60} {
		name := fmt.Sprintf("holes/n=%d/t=%d", width*width, 6+i)
		r := seeded(name)
		nodes := width * width
		var ends [][2]int32
		for v := range int32(nodes) {
			if (int(v)+1)%width > 0 && r.IntN(10) > 0 {
				ends = append(ends, [2]int32{v, v + 1})
			}
			if down := v + int32(width); int(down) < nodes {
				ends = append(ends, [2]int32{v, down})
			}
		}
		for v := range int32(width - 1) { // the first row is whole
			ends = append(ends, [2]int32{v, v + 1})
		}
		all = append(all, Case{Name: name, Problem: drawn(r, nodes, ends, 6+i, func() float64 { return float64(1 + r.IntN(20)) })})
	}
	for i, nodes := range []int{500, 1000, 1500, 2000} {
		name := fmt.Sprintf("few/n=%d/m=%d/t=%d", nodes, 4*nodes, 8+i)
		r := seeded(name)
		all = append(all, Case{Name: name, Problem: drawn(r, nodes, connected(r, nodes, 4*nodes), 8+i, func() float64 { return float64(1 + r.IntN(100)) })})
	}
	return all
}

// LowWidth returns problems like track 2 of PACE 2018: parts of k-trees, k from
// 3 to 10, of 200 to 2,000 nodes, of which a tenth to a third are terminals.
func LowWidth() (all []Case) {
	for i, nodes := range []int{200, 400, 600, 800, 1000, 1200, 1600, 2000} {
		width := 3 + i
		name := fmt.Sprintf("width/n=%d/k=%d", nodes, width)
		r := seeded(name)
		var ends [][2]int32
		var bags [][]int32
		first := make([]int32, width)
		for v := range first {
			first[v] = int32(v)
		}
		for v := 1; v < width; v++ {
			ends = append(ends, [2]int32{int32(v - 1), int32(v)})
		}
		bags = append(bags, first)
		for v := width; v < nodes; v++ {
			bag := slices.Clone(bags[r.IntN(len(bags))])
			keep := r.IntN(width)
			for at, u := range bag {
				if at == keep || r.IntN(10) < 6 {
					ends = append(ends, [2]int32{u, int32(v)})
				}
			}
			bag[r.IntN(width)] = int32(v)
			bags = append(bags, bag)
		}
		all = append(all, Case{Name: name, Problem: drawn(r, nodes, ends, nodes/(3+i), func() float64 { return float64(1 + r.IntN(100)) })})
	}
	return all
}

func seeded(name string) *rand.Rand {
	h := uint64(14695981039346656037)
	for _, b := range []byte(name) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return rand.New(rand.NewPCG(h, 1))
}

// nearly draws costs that are equal, or differ by at most a tenth.
func nearly(r *rand.Rand, equal bool) func() float64 {
	return func() float64 {
		if equal {
			return 1
		}
		return float64(100 + r.IntN(11))
	}
}

// connected returns a random tree with random edges more.
func connected(r *rand.Rand, nodes, edges int) [][2]int32 {
	ends := make([][2]int32, 0, edges)
	order := r.Perm(nodes)
	for i := 1; i < nodes; i++ {
		ends = append(ends, [2]int32{int32(order[i]), int32(order[r.IntN(i)])})
	}
	for len(ends) < edges {
		if u, v := int32(r.IntN(nodes)), int32(r.IntN(nodes)); u != v {
			ends = append(ends, [2]int32{u, v})
		}
	}
	return ends
}

// words returns the words of a length over so many letters; those that differ in
// one letter are joined.
func words(letters, length int) (nodes int, ends [][2]int32) {
	nodes = 1
	for range length {
		nodes *= letters
	}
	for v := range nodes {
		for power := 1; power < nodes; power *= letters {
			for more := 1; v/power%letters+more < letters; more++ {
				ends = append(ends, [2]int32{int32(v), int32(v + more*power)})
			}
		}
	}
	return nodes, ends
}

// drawn draws costs and terminals.
func drawn(r *rand.Rand, nodes int, ends [][2]int32, terminals int, cost func() float64) steiner.Problem {
	g, err := steiner.NewGraph(nodes, ends)
	if err != nil {
		panic(err) // the generators make no loop and no other node
	}
	p := steiner.Problem{Graph: g, Cost: make([]float64, len(ends))}
	for e := range p.Cost {
		p.Cost[e] = cost()
	}
	for _, v := range r.Perm(nodes)[:terminals] {
		p.Terminals = append(p.Terminals, int32(v))
	}
	return p
}
