package revoke

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tributary-fabric/tributary/ranktree"
)

const (
	everySize  = 1100    // up to which every size is tested
	largeSize  = 1 << 20 // up to which sizes are sampled
	exactSize  = 64      // up to which the smallest cuts are searched for
	searchSize = 4096    // up to which graphs are searched with dead vertices
)

// largeSizes are sizes above some, up to others: around powers of two, sums of two of them, and any.
func largeSizes(from, to, count int) (all []int) {
	r := rand.New(rand.NewPCG(1, uint64(to)))
	for k := range 21 {
		all = append(all, 1<<k-1, 1<<k, 1<<k+1, 1<<k+1<<(k/2), 1<<k+1<<(k-min(k, 1)))
	}
	for range count {
		all = append(all, from+r.IntN(to-from))
	}
	return slices.DeleteFunc(all, func(n int) bool { return n <= from || n > to })
}

// linksOf is the definition: the vertices 2^k around the ring in either direction, for 2^k < n.
func linksOf(n int, v uint32) map[uint32]bool {
	all := map[uint32]bool{}
	for step := 1; step < n; step *= 2 {
		all[uint32((int(v)+step)%n)] = true
		all[uint32((int(v)-step+n)%n)] = true
	}
	return all
}

func checkVertex(t *testing.T, n int, v uint32, first int) {
	t.Helper()
	want := linksOf(n, v)
	all := slices.Collect(Neighbours(n, v, first))
	if len(all) != len(want) || len(all) != Degree(n) {
		t.Fatalf("%d of %d: %d neighbours %v, the degree is %d, the definition has %d", v, n, len(all), all, Degree(n), len(want))
	}
	var seen places
	for i, w := range all {
		if w == v || !want[w] || !AreNeighbours(n, v, w) || !AreNeighbours(n, w, v) {
			t.Fatalf("%d of %d: neighbour %d", v, n, w)
		}
		p := placeOf(n, v, w)
		if seen&p != 0 {
			t.Fatalf("%d of %d: neighbour %d again", v, n, w)
		}
		seen |= p
		if i == 0 {
			continue
		}
		isFirst := func(length int) bool { return length <= first }
		now, before := lengthOf(n, v, w), lengthOf(n, v, all[i-1])
		if isFirst(now) && !isFirst(before) || isFirst(now) == isFirst(before) && now > before {
			t.Fatalf("%d of %d, from %d on: %v", v, n, first, all)
		}
	}
}

// TestNeighbours: they are those of the definition, each once, in the stated order, and the same seen
// from both ends.
func TestNeighbours(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for n := 1; n <= everySize; n++ {
		for v := range min(n, 3) {
			checkVertex(t, n, uint32(v), 0)
		}
		for range 3 {
			checkVertex(t, n, uint32(r.IntN(n)), 1<<r.IntN(logarithm(n)+1))
		}
		for v := range uint32(n) {
			count := 0
			for w := range Neighbours(n, v, 0) {
				if count++; !AreNeighbours(n, w, v) {
					t.Fatalf("%d of %d: %d has no link back", v, n, w)
				}
			}
			if count != Degree(n) {
				t.Fatalf("%d of %d: %d neighbours, the degree is %d", v, n, count, Degree(n))
			}
			if n <= 130 {
				want := linksOf(n, v)
				for w := range uint32(n) {
					if AreNeighbours(n, v, w) != want[w] {
						t.Fatalf("%d and %d of %d: a link is %v", v, w, n, want[w])
					}
				}
			}
		}
	}
	for _, n := range append(largeSizes(everySize, largeSize, 300), 1<<24) {
		for _, v := range []int{0, 1, n / 2, n - 1, r.IntN(n), r.IntN(n)} {
			checkVertex(t, n, uint32(v), 0)
			checkVertex(t, n, uint32(v), 1<<r.IntN(logarithm(n)))
		}
	}
}

// TestStepsGoUpToN: a loop over the steps up to n/2 builds a smaller graph.
func TestStepsGoUpToN(t *testing.T) {
	for n, want := range map[int]int{1: 0, 2: 1, 3: 2, 4: 3, 5: 4, 6: 4, 7: 6, 8: 5, 9: 6, 11: 8, 12: 6, 13: 8, 63: 12, 64: 11, 1000: 20, 1 << 20: 39, 1<<20 + 1: 40, 1<<20 - 1: 40} {
		if got := Degree(n); got != want {
			t.Errorf("degree %d of %d vertices, want %d", got, n, want)
		}
	}
	for first, want := range [][]uint32{{4, 3, 2, 5, 1, 6}, {1, 6, 4, 3, 2, 5}, {2, 5, 1, 6, 4, 3}} {
		if got := slices.Collect(Neighbours(7, 0, first)); !slices.Equal(got, want) {
			t.Errorf("neighbours %v of 0 of 7 from %d on, want %v", got, first, want)
		}
	}
}

// TestNeighboursCanStop: who needs no more of them may stop at any.
func TestNeighboursCanStop(t *testing.T) {
	for most := range Degree(100) {
		count := 0
		for range Neighbours(100, 50, 0) {
			if count++; count > most {
				break
			}
		}
		if count != most+1 {
			t.Errorf("%d neighbours", count)
		}
	}
}

// distances returns how far all vertices are from one in the graph without the dead; -1: they
// cannot be reached.
func distances(n int, from uint32, isDead func(uint32) bool) (all []int8, reached, most int) {
	all = slices.Repeat([]int8{-1}, n)
	all[from] = 0
	queue := []uint32{from}
	for i := 0; i < len(queue); i++ {
		v := queue[i]
		for w := range Neighbours(n, v, 0) {
			if all[w] < 0 && !isDead(w) {
				all[w] = all[v] + 1
				queue = append(queue, w)
			}
		}
	}
	return all, len(queue), int(all[queue[len(queue)-1]])
}

func nobody(uint32) bool { return false }

// TestDiameter: all vertices are within Diameter of each other, and so within ceil(log2 n).
func TestDiameter(t *testing.T) {
	check := func(n int, from uint32) {
		_, reached, most := distances(n, from, nobody)
		if reached != n || most > Diameter(n) || Diameter(n) > logarithm(n) {
			t.Fatalf("%d of %d: %d are reached, within %d, the bound is %d of %d", from, n, reached, most, Diameter(n), logarithm(n))
		}
	}
	for n := 1; n <= everySize; n++ {
		check(n, 0) // all vertices look alike
		check(n, uint32(n/2))
	}
	for _, n := range largeSizes(everySize, 1<<17, 20) {
		check(n, uint32(n/3))
	}
}

// smallestCut returns the least number of vertices that cut 0 off from another one, which is that of
// the whole graph, since all vertices look alike: the largest flow with room for one through each.
func smallestCut(n int) int {
	least := n - 1
	for t := 1; t < n; t++ {
		if !AreNeighbours(n, 0, uint32(t)) {
			least = min(least, disjointPaths(n, uint32(t)))
		}
	}
	return least
}

// disjointPaths returns how many paths from 0 to a vertex share no other one. Each vertex is two:
// 2v, where links come in, and 2v+1, where they go out.
func disjointPaths(n int, to uint32) (paths int) {
	flow := map[[2]uint32]bool{}
	for {
		before := slices.Repeat([]int32{-1}, 2*n)
		queue := []uint32{1}
		before[1] = 1
		visit := func(a, b uint32) {
			if isOpen := flow[[2]uint32{b, a}] || !flow[[2]uint32{a, b}]; isOpen && before[b] < 0 {
				before[b] = int32(a)
				queue = append(queue, b)
			}
		}
		for i := 0; i < len(queue) && before[2*to] < 0; i++ {
			a := queue[i]
			v := a / 2
			if a%2 == 0 { // forward through the vertex, or back over a link with flow
				visit(a, a+1)
			} else if flow[[2]uint32{a - 1, a}] {
				visit(a, a-1)
			}
			for w := range Neighbours(n, v, 0) {
				if a%2 == 1 {
					visit(a, 2*w)
				} else if flow[[2]uint32{2*w + 1, a}] {
					visit(a, 2*w+1)
				}
			}
		}
		if before[2*to] < 0 {
			return paths
		}
		paths++
		for b := 2 * to; b != 1; b = uint32(before[b]) {
			a := uint32(before[b])
			if back := [2]uint32{b, a}; flow[back] {
				delete(flow, back)
			} else {
				flow[[2]uint32{a, b}] = true
			}
		}
	}
}

// leastBoundary returns the least number of neighbours of a set of vertices that is smaller than the
// rest, by Y. O. Hamidoune, "On the connectivity of Cayley digraphs" (1984): the smallest such set
// is one vertex, or a subgroup of the ring, of the multiples of a divisor of n.
func leastBoundary(n int) int {
	least := Degree(n)
	for d := 2; d <= n/2; d++ {
		if n%d != 0 {
			continue
		}
		classes := map[int]bool{}
		for w := range Neighbours(n, 0, 0) {
			if int(w)%d != 0 {
				classes[int(w)%d] = true
			}
		}
		if len(classes) < d-1 { // otherwise the set and its neighbours are all there is
			least = min(least, n/d*len(classes))
		}
	}
	return least
}

// TestConnectivity: no fewer vertices than Degree cut the graph. Up to exactSize this is exact by
// the flow between all pairs, and above by the theorem, which is compared with the flow.
func TestConnectivity(t *testing.T) {
	for n := 1; n <= exactSize; n++ {
		cut := smallestCut(n)
		if cut != Degree(n) {
			t.Fatalf("%d vertices: %d cut the graph, the degree is %d", n, cut, Degree(n))
		}
		if least := leastBoundary(n); least != cut {
			t.Fatalf("%d vertices: %d cut the graph, the theorem has %d", n, cut, least)
		}
	}
	for n := exactSize + 1; n <= searchSize; n++ {
		if least := leastBoundary(n); least != Degree(n) {
			t.Fatalf("%d vertices: %d cut the graph, the degree is %d", n, least, Degree(n))
		}
	}
	for _, n := range largeSizes(searchSize, largeSize, 50) {
		if least := leastBoundary(n); least != Degree(n) {
			t.Fatalf("%d vertices: %d cut the graph, the degree is %d", n, least, Degree(n))
		}
	}
}

// victims returns sets of Degree-1 vertices that an adversary may choose: any, a neighbourhood all
// but one, vertices that follow each other, evenly spread ones, and what cuts off two neighbours all but
// one.
func victims(n int, r *rand.Rand) (sets [][]uint32) {
	count := Degree(n) - 1
	at := uint32(r.IntN(n))
	distinct := func(next func(i int) uint32) {
		var set []uint32
		for i := 0; len(set) < count && i < 4*n; i++ {
			if v := next(i) % uint32(n); !slices.Contains(set, v) {
				set = append(set, v)
			}
		}
		sets = append(sets, set)
	}
	all := slices.Collect(Neighbours(n, at, 0))
	rest := slices.Collect(Neighbours(n, all[0], 0))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	distinct(func(int) uint32 { return uint32(r.IntN(n)) })
	distinct(func(i int) uint32 { return all[i%len(all)] })
	distinct(func(i int) uint32 { return at + uint32(i) })
	distinct(func(i int) uint32 { return at + uint32(i*n/count) })
	distinct(func(i int) uint32 {
		if both := append(all[:len(all):len(all)], rest...); both[i%len(both)] != at {
			return both[i%len(both)]
		}
		return all[0]
	})
	return sets
}

// TestDeathsLeaveOnePiece: the graph is searched without Degree-1 vertices. Without all neighbours of a vertex
// it is cut off, so that more deaths are too many.
func TestDeathsLeaveOnePiece(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	check := func(n int) {
		for _, set := range victims(n, r) {
			from := uint32(0)
			for slices.Contains(set, from) {
				from++
			}
			_, reached, most := distances(n, from, func(v uint32) bool { return slices.Contains(set, v) })
			if reached != n-len(set) || most > logarithm(n)+1 {
				t.Fatalf("%d vertices without %v: %d are reached, within %d", n, set, reached, most)
			}
		}
		if n > Degree(n)+1 {
			all := slices.Collect(Neighbours(n, 1, 0))
			if _, reached, _ := distances(n, 1, func(v uint32) bool { return slices.Contains(all, v) }); reached != 1 {
				t.Fatalf("%d vertices: 1 reaches %d without its neighbours", n, reached)
			}
		}
	}
	for n := 2; n <= 300; n++ {
		check(n)
	}
	for _, n := range largeSizes(300, searchSize, 20) {
		check(n)
	}
}

// TestBroadcastTree: each edge of a binomial tree is a link, from whatever root.
func TestBroadcastTree(t *testing.T) {
	check := func(n, root int) {
		tree := ranktree.Rotate(ranktree.KNomial(n, 2), root)
		for rank := range n {
			if parent, has := tree.Parent(rank); has && !AreNeighbours(n, uint32(rank), uint32(parent)) {
				t.Fatalf("%d members, root %d: %d and its parent %d have no link", n, root, rank, parent)
			}
		}
	}
	for n := 1; n <= 200; n++ {
		for root := range n {
			check(n, root)
		}
	}
	for _, n := range largeSizes(200, 1<<17, 10) {
		check(n, n/3)
	}
}

// TestDegreeIsLogarithmic: at most two links for each power of two.
func TestDegreeIsLogarithmic(t *testing.T) {
	for n := 2; n <= largeSize; n += 1 + n/100 {
		if d, most := Degree(n), 2*bits.Len(uint(n-1)); d > most || d < most-2 {
			t.Fatalf("degree %d of %d vertices", d, n)
		}
	}
}
