package metrics_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/metrics"
)

func TestBounds(t *testing.T) {
	var d metrics.Durations
	var seconds []float64
	_, _, within := d.Snapshot()
	for bound := range within {
		seconds = append(seconds, bound)
	}
	slices.Sort(seconds)
	want := []float64{
		10e-6, 20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3, 50e-3, .1, .2, .5, 1, 2, 5, 10,
	}
	if !slices.Equal(seconds, want) {
		t.Errorf("%v, want %v", seconds, want)
	}
}

func TestCountsAreThoseOfASlowCount(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var d metrics.Durations
	took := []time.Duration{-1, 0, 1, 10 * time.Microsecond, 10*time.Microsecond + 1, 10 * time.Second, 10*time.Second + 1, time.Hour}
	for range 1000 {
		took = append(took, time.Duration(random.Int64N(int64(20*time.Second))>>random.IntN(30)))
	}
	sum := time.Duration(0)
	var all sync.WaitGroup
	for _, x := range took {
		sum += x
		all.Go(func() { d.Observe(x) })
	}
	all.Wait()
	count, seconds, within := d.Snapshot()
	if count != uint64(len(took)) || seconds != sum.Seconds() {
		t.Errorf("%d, %v s, want %d, %v", count, seconds, len(took), sum)
	}
	for bound, n := range within {
		want := uint64(0)
		for _, x := range took {
			if x.Seconds() <= bound {
				want++
			}
		}
		if n != want {
			t.Errorf("%d within %v s, want %d", n, bound, want)
		}
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	var d metrics.Durations
	if n := testing.AllocsPerRun(100, func() { d.Observe(time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
