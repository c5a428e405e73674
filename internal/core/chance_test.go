package core

import "testing"

func TestChance(t *testing.T) {
	a, b := Chance(1), Chance(1)
	seen := map[int]int{}
	for range 7000 {
		n := a.Below(7)
		if m := b.Below(7); n != m {
			t.Fatalf("one seed gives %d and %d", n, m)
		}
		seen[n]++
	}
	for n := range 7 {
		if seen[n] < 900 || seen[n] > 1100 {
			t.Errorf("%d came %d times of 7000", n, seen[n])
		}
	}
	if first := Chance(0); first.Uint64() != 0xe220a8397b1dcdaf { // the published sequence
		t.Error("it is another sequence than SplitMix64's")
	}
}
