package metrics

import (
	"sync/atomic"
	"time"
)

// buckets is the number of bounds: 1-2-5 steps from 10 µs to 10 s.
const buckets = 19

var bounds = func() (all [buckets]time.Duration) {
	steps := [...]time.Duration{1, 2, 5}
	unit := 10 * time.Microsecond
	for i := range all {
		all[i] = steps[i%len(steps)] * unit
		if i%len(steps) == len(steps)-1 {
			unit *= 10
		}
	}
	return all
}()

// Durations counts durations. Its zero value is empty. It is safe for
// concurrent use.
type Durations struct {
	counts [buckets + 1]atomic.Uint64 // by the smallest bound that is not exceeded; the last one: none
	sum    atomic.Int64               // nanoseconds
}

// Observe counts one duration.
func (d *Durations) Observe(took time.Duration) {
	i := 0
	for i < buckets && took > bounds[i] {
		i++
	}
	d.counts[i].Add(1)
	d.sum.Add(int64(took))
}

// Snapshot returns what was counted, how long that took in sum, and how many
// durations were of at most so many seconds. Those that are counted meanwhile are in
// it or not.
func (d *Durations) Snapshot() (count uint64, seconds float64, within map[float64]uint64) {
	within = make(map[float64]uint64, buckets)
	for i := range d.counts {
		count += d.counts[i].Load()
		if i < buckets {
			within[bounds[i].Seconds()] = count
		}
	}
	return count, time.Duration(d.sum.Load()).Seconds(), within
}
