package core

import "math/bits"

// Chance is a core's own random numbers: SplitMix64 (Steele, Lea and Flood, 2014).
// Its value is the seed, which comes from the driver, so that a seed repeats a run.
type Chance uint64

// Uint64 returns a number.
func (r *Chance) Uint64() uint64 {
	*r += 0x9e3779b97f4a7c15
	x := uint64(*r)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Below returns a number from 0 to n-1.
func (r *Chance) Below(n int) int {
	high, _ := bits.Mul64(r.Uint64(), uint64(n))
	return int(high)
}
