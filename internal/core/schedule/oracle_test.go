package schedule

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/pathsel"
)

// fabric is what an analytic model of hosts with processors of their own knows: seconds of a message's
// latency, of handling a message, of a byte on a link, and of a byte that is reduced or copied
// (Culler and others, "LogP: Towards a Realistic Model of Parallel Computation", PPoPP 1993).
type fabric struct{ latency, overhead, link, local float64 }

// takes returns the seconds that work takes on hosts that share so many processors; 0: each has its own.
func (f fabric) takes(w *pathsel.Work, processors int) float64 {
	n := w.Shared(processors)
	return f.latency*n[pathsel.Step] + f.overhead*n[pathsel.Message] + mebibyte*(f.link*n[pathsel.Link]+f.local*n[pathsel.Local])
}

// calls returns calls of each collective from 8 bytes to 16 MiB, in groups of these sizes.
func calls(sizes ...int) (all []Call) {
	for _, of := range []Collective{Allreduce, Reduce, Broadcast, Gather, Scatter, Allgather, Alltoall, ReduceScatter, Scan} {
		for _, n := range sizes {
			for bytes := 8; bytes <= 16<<20; bytes *= 8 {
				all = append(all, Call{Collective: of, Size: n, Width: 4, Count: bytes / 4, Segment: SegmentBytes})
			}
		}
	}
	return all
}

// groups are sizes of groups, up to those that nobody has measured.
var groups = []int{2, 3, 4, 7, 8, 16, 33, 64, 100, 128, 256, 511, 512, 1000, 1024}

// judge reports choices by costs that take more than most times as long as the best algorithm.
func (f fabric) judge(t *testing.T, costs *pathsel.Costs, most float64) (worst float64) {
	for _, c := range calls(groups...) {
		chosen, _ := Choose(&c, costs)
		var best Algorithm
		least, took := math.Inf(1), 0.0
		for _, a := range Possible(&c) {
			w := WorkOf(&c, a)
			x := f.takes(&w, costs.Processors)
			if a == chosen {
				took = x
			}
			if x < least {
				best, least = a, x
			}
		}
		if worst = max(worst, took/least); took > most*least {
			t.Errorf("%+v: %s of %d bytes in a group of %d, %d processors: %s takes %.2f times as long as %s",
				f, c.Collective, c.Count*c.Width, c.Size, costs.Processors, chosen, took/least, best)
		}
	}
	return worst
}

// builtIn returns the fabric that the built-in costs of all collectives together describe.
func builtIn() fabric {
	r := pathsel.DefaultCosts().Rates
	mean := func(terms ...pathsel.Term) (sum float64) {
		for _, term := range terms {
			for f := range r {
				sum += r[f][pathsel.ByMessages][term].Seconds() / float64(len(r))
			}
		}
		return sum
	}
	return fabric{mean(pathsel.Step), mean(pathsel.Message, pathsel.Peer), mean(pathsel.Link) / mebibyte, mean(pathsel.Local) / mebibyte}
}

// TestDefaultCostsAreSane: no choice by the built-in costs takes more than twice as long as the best
// algorithm, in groups of any size, on the fabric that all of them together describe; nor more than 2.6
// times where latency, processors, links or memory are half or twice as fast; whatever links' rates are
// known to be.
func TestDefaultCostsAreSane(t *testing.T) {
	own := builtIn()
	all := []fabric{own}
	for _, by := range []float64{0.5, 2} {
		for i := range 4 {
			f := [4]float64{own.latency, own.overhead, own.link, own.local}
			f[i] *= by
			all = append(all, fabric{f[0], f[1], f[2], f[3]})
		}
	}
	for _, rate := range []int64{0, 200e6, 1e9, 10e9, 100e9} {
		costs := &pathsel.Costs{Rates: pathsel.DefaultCosts().Rates, Links: pathsel.Links{Rate: rate}}
		for i, f := range all {
			most := 2.6
			if i == 0 {
				most = 2
			}
			if rate > 0 {
				f.link = max(f.link, headers*8/float64(rate))
			}
			t.Logf("links of %d bit/s: at worst %.2f", rate, f.judge(t, costs, most))
		}
	}
}

// TestFittedCostsAreSane: costs that are fitted to groups of 2 to 16 members, on fabrics of all sorts,
// with measurements that are off by a fifth, take at most twice as long as the best, up to groups of 1024.
func TestFittedCostsAreSane(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	worst := 0.0
	for _, latency := range []float64{2e-6, 5e-5, 1e-3} {
		for _, overhead := range []float64{0.02 * latency, 0.1 * latency, 2 * latency} { // less is lost in the errors
			for _, link := range []float64{1e-10, 1e-9, 4e-8} {
				for _, local := range []float64{1e-10, 1e-9} {
					for _, processors := range []int{0, 2} {
						f := fabric{latency, overhead, link, local}
						var rows []pathsel.Timed
						for _, c := range calls(2, 4, 8, 16) {
							for _, a := range Possible(&c) {
								w := WorkOf(&c, a)
								took := f.takes(&w, processors) * (0.8 + 0.4*random.Float64())
								rows = append(rows, pathsel.Timed{Family: c.Collective.Family(), Work: w, Took: time.Duration(took * 1e9)})
							}
						}
						fit, err := pathsel.FitCosts(pathsel.DefaultCosts(), processors, rows)
						if err != nil {
							t.Fatal(err)
						}
						worst = max(worst, f.judge(t, &fit.Costs, 2))
					}
				}
			}
		}
	}
	t.Logf("at worst %.2f", worst)
}

// TestLongAlltoall: Bruck's algorithm, which sends a piece several times, is for short pieces.
func TestLongAlltoall(t *testing.T) {
	for _, n := range groups {
		for _, bytes := range []int{64 << 10, 1 << 20, 16 << 20} {
			c := Call{Collective: Alltoall, Size: n, Width: 4, Count: bytes / 4}
			if a, _ := Choose(&c, pathsel.DefaultCosts()); !slices.Contains([]Algorithm{Pairwise, Linear}, a) {
				t.Errorf("alltoall of %d bytes in a group of %d by %s", bytes, n, a)
			}
		}
	}
}
