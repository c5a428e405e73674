package scaling

import (
	"math"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/schedule"
)

// The closed forms of host algorithms are what the simulation of all members finds: to a nanosecond a step.
func TestFormsOfHostAlgorithms(t *testing.T) {
	for _, s := range []Shape{{8}, {4, 2}, {8, 4}, {4, 4, 4}, {32, 4}} {
		for _, c := range []Costs{Measured(), Bypass()} {
			for _, cut := range []bool{false, true} {
				m := Hardware(c, 100e9, cut, 1432)
				for _, bytes := range []int{8, 4096, 64 << 10, 1 << 20} {
					for _, a := range HostAlgorithms {
						if bytes/4 < s.Hosts() && a != schedule.RecursiveDoubling || s.Hosts() > 64 && a == schedule.Ring {
							continue // pieces of one element and of none
						}
						want, err := m.By(a, s, bytes)
						if err != nil {
							t.Fatal(err)
						}
						got := m.Form(a, s, bytes)
						if off := math.Abs(float64(got)/float64(want) - 1); off > 0.02 {
							t.Errorf("%v of %d bytes in %v, %s, cut-through %v: %v in closed form, %v simulated", a, bytes, s, c.Taken, cut, got, want)
						}
					}
				}
			}
		}
	}
}
