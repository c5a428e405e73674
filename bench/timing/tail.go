package timing

import "slices"

// Tail is how times are distributed, in microseconds.
type Tail struct {
	Min    float64 `json:"min_us"`
	Median float64 `json:"median_us"`
	P90    float64 `json:"p90_us"`
	P99    float64 `json:"p99_us"`
	P999   float64 `json:"p999_us"`
	Max    float64 `json:"max_us"`
}

// TailOf sorts the times, and returns how they are distributed. A quantile is
// the smallest time that is larger than that share of them, the largest of all
// where there is none: nothing is made up between two times.
func TailOf(times []float64) Tail {
	n := len(times)
	if n == 0 {
		return Tail{}
	}
	slices.Sort(times)
	at := func(share float64) float64 { return times[min(n-1, int(float64(n)*share))] }
	return Tail{times[0], times[n/2], at(0.9), at(0.99), at(0.999), times[n-1]}
}

// goodput returns the bits of a vector by the time of an operation (in
// microseconds), as a share of a link's rate in bit/s; 0: unknown.
func goodput(size int, us float64, rate int64) float64 {
	if rate <= 0 || us <= 0 {
		return 0
	}
	return float64(size) * 8 / (us * 1e-6) / float64(rate)
}
