// Package steinertest computes exact costs of small Steiner trees, slowly, for tests
// and tables.
package steinertest

import (
	"math"
	"math/bits"
)

// MaxTerminals is the most terminals that Optimum can be asked for.
const MaxTerminals = 12

// Optimum returns what the cheapest tree costs that spans the terminals; false if
// there is none. Edges of cost +Inf are forbidden. limit has, by node, the most tree
// edges, of which 0 and 1 count here, and all others are none; nil: none anywhere.
// It is the dynamic programme of Dreyfus and Wagner (Networks 1, 1971): for each set
// of terminals and each node the cheapest tree of both. Its time and memory are
// exponential in the terminals.
func Optimum(nodes int, ends [][2]int32, cost []float64, limit, terminals []int32) (float64, bool) {
	terminal := make([]bool, nodes)
	for _, t := range terminals {
		terminal[t] = true
	}
	branches := func(v int32) bool { return limit == nil || limit[v] > 1 }
	type arc struct {
		to   int32
		cost float64
	}
	near := make([][]arc, nodes)
	for e, end := range ends {
		for side, v := range end {
			// Others of limit 1 or less are on no tree; nor are terminals of limit 0.
			if w := end[1-side]; branches(w) || terminal[w] && limit[w] > 0 {
				near[v] = append(near[v], arc{w, cost[e]})
			}
		}
	}
	last := len(terminals) - 1
	best := make([][]float64, 1<<last) // by the set of the other terminals, and node
	for set := 1; set < len(best); set++ {
		row := make([]float64, nodes)
		best[set] = row
		begin := int32(-1)
		for v := range row {
			row[v] = math.Inf(1)
		}
		if bits.OnesCount(uint(set)) == 1 {
			begin = terminals[bits.TrailingZeros(uint(set))]
			row[begin] = 0
		}
		for part := (set - 1) & set; part > set^part; part = (part - 1) & set {
			for v := range row {
				if branches(int32(v)) {
					row[v] = min(row[v], best[part][v]+best[set^part][v])
				}
			}
		}
		var queue []int32
		queued := make([]bool, nodes)
		for v := range row {
			if queued[v] = !math.IsInf(row[v], 1); queued[v] {
				queue = append(queue, int32(v))
			}
		}
		for ; len(queue) > 0; queue = queue[1:] {
			v := queue[0]
			queued[v] = false
			if !branches(v) && v != begin || limit != nil && limit[v] == 0 {
				continue
			}
			for _, a := range near[v] {
				if total := row[v] + a.cost; total < row[a.to] {
					row[a.to] = total
					if !queued[a.to] {
						queued[a.to] = true
						queue = append(queue, a.to)
					}
				}
			}
		}
	}
	if last == 0 {
		return 0, true
	}
	total := best[len(best)-1][terminals[last]]
	return total, !math.IsInf(total, 1)
}
