package member

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestTable compares the table with a map from numbers to indices. Numbers that
// are near each other have the same home, and the largest have the last ones.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table table
		numbers := make([]uint64, 64)
		seen := map[uint64]bool{}
		for i := range numbers {
			x := rapid.Uint64().Draw(t, "number")
			switch rapid.IntRange(0, 2).Draw(t, "near") {
			case 0:
				x >>= 56
			case 1:
				x |= math.MaxUint64 &^ 0xff
			}
			for seen[x] {
				x += 1 << 8
			}
			numbers[i], seen[x] = x, true
		}
		number := func(i Index) uint64 { return numbers[i] }
		in := map[Index]bool{}
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			i := Index(rapid.IntRange(0, len(numbers)-1).Draw(t, "index"))
			if in[i] {
				table.remove(i, number)
				delete(in, i)
			} else {
				table.add(i, number)
				in[i] = true
			}
			for j, x := range numbers {
				if found, ok := table.find(x, number); ok != in[Index(j)] || ok && found != Index(j) {
					t.Fatalf("%#x is found at %d, %v; want %d, %v", x, found, ok, j, in[Index(j)])
				}
			}
		}
		if table.count != len(in) || 4*table.count > 3*len(table.slots) {
			t.Fatalf("%d of %d, want %d", table.count, len(table.slots), len(in))
		}
	})
}
