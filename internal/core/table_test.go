package core

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestTable compares the table with a map from numbers to elements. Numbers that
// are near each other have the same home, and the largest have the last ones.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := Table[int32]{Free: -1}
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
		number := func(i int32) uint64 { return numbers[i] }
		in := map[int32]bool{}
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			i := int32(rapid.IntRange(0, len(numbers)-1).Draw(t, "index"))
			if in[i] {
				table.Remove(i, number)
				delete(in, i)
			} else {
				table.Add(i, number)
				in[i] = true
			}
			for j, x := range numbers {
				if found, ok := table.Find(x, number); ok != in[int32(j)] || ok && found != int32(j) {
					t.Fatalf("%#x is found at %d, %v; want %d, %v", x, found, ok, j, in[int32(j)])
				}
			}
		}
		if table.count != len(in) || 4*table.count > 3*len(table.slots) {
			t.Fatalf("%d of %d, want %d", table.count, len(table.slots), len(in))
		}
	})
}
