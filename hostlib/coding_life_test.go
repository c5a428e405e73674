package hostlib

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/reduce"
)

// hostile are numbers at the edges of a type: subnormal, the greatest, zeros of both signs, and in some blocks NaNs
// and infinities.
func hostile[T float32 | float64](members, length int) [][]T {
	r := rand.New(rand.NewPCG(uint64(members), uint64(length)+1))
	tiny, greatest := math.SmallestNonzeroFloat64, math.MaxFloat64
	if reduce.TypeOf[T]() == reduce.Float32 {
		tiny, greatest = math.SmallestNonzeroFloat32, math.MaxFloat32
	}
	all := make([][]T, members)
	for i := range all {
		all[i] = make([]T, length)
		for j := range all[i] {
			x := []float64{tiny, -tiny, 3 * tiny, greatest, -greatest, 0, math.Copysign(0, -1), 1, r.NormFloat64()}
			if j/64%4 == 1 {
				x = append(x, math.NaN(), math.Inf(1), math.Inf(-1))
			}
			all[i][j] = T(x[r.IntN(len(x))])
			if j/64%3 == 2 { // blocks of the least alone
				all[i][j] = T(tiny * float64(r.IntN(5)-2))
			}
		}
	}
	return all
}

// sumsHostile checks allreduces of such vectors.
func sumsHostile[T float32 | float64](t testing.TB, comms []*Communicator, length int) {
	t.Helper()
	in := hostile[T](len(comms), length)
	want := fixedOracle(t, in)
	each(len(comms), func(i int) {
		if o, err := Allreduce(within(t), comms[i], reduce.Sum, in[i], in[i]); err != nil || !o.Reproducible || !sameBits(in[i], want) {
			t.Errorf("rank %d of %d, %d elements: %+v, %v", i, len(comms), length, o, err)
		}
	})
}

// TestReproducibleOfMany: above 64 members words are wider.
func TestReproducibleOfMany(t *testing.T) {
	const n = 65
	hosts, members := joinAs(t, names(n))
	for _, options := range [][]GroupOption{{OnTreeOfHosts()}, {OnHosts(RecursiveDoubling, Rabenseifner)}} {
		comms := form(t, "job", hosts, members, append(options, Reproducible())...)
		for _, length := range []int{1, 200, 401} {
			sumsHostile[float32](t, comms, length)
		}
		sumsHostile[float64](t, comms, 99)
		leave(t, comms)
	}
}

// TestReproducibleAfterGrowAndShrink: sums are those of the members that there are.
func TestReproducibleAfterGrowAndShrink(t *testing.T) {
	hosts, members := joinAs(t, names(5), patient)
	comms := form(t, "job", hosts[:3], members[:3], Reproducible())
	sumsHostile[float32](t, comms, 1000)
	larger := grown(t, comms, hosts[3:])
	sumsHostile[float32](t, larger, 1000)
	sumsHostile[float64](t, larger, 1000)
	die(t, hosts, 2)
	smaller := shrink(t, without(larger, 2))
	sumsHostile[float32](t, smaller, 1000)
	sumsHostile[float64](t, smaller, 1)
	leave(t, smaller)
}

// TestReproducibleWhileOthersGiveUp: sums go on whose callers stop to wait, also persistent ones, in place; many are
// under way at once, with other operations between.
func TestReproducibleWhileOthersGiveUp(t *testing.T) {
	const n, length, rounds = 4, 3001, 12
	hosts, members := joinAs(t, names(n))
	for _, way := range []GroupOption{OnTreeOfHosts(), OnHosts()} {
		comms := form(t, "job", hosts, members, way, Reproducible())
		in := hostile[float64](n, length)
		want := fixedOracle(t, in)
		each(n, func(i int) {
			r := rand.New(rand.NewPCG(uint64(i), 7))
			var under []*Request
			vectors := make([][]float64, rounds)
			v := make([]float64, length)
			step := Prepare(func() *Request { return StartAllreduce(comms[i], reduce.Sum, v, v) })
			for k := range rounds {
				vectors[k] = slices.Clone(in[i])
				ctx, cancel := context.WithCancel(within(t))
				if r.IntN(2) == 0 {
					cancel()
				}
				_, err := Allreduce(ctx, comms[i], reduce.Sum, vectors[k], vectors[k])
				cancel()
				var unfinished *UnfinishedError
				if errors.As(err, &unfinished) {
					under = append(under, unfinished.Request)
				} else if err != nil {
					t.Errorf("rank %d: %v", i, err)
				}
				copy(v, in[i])
				request, err := step.Start()
				if err != nil {
					t.Errorf("rank %d: %v", i, err)
					return
				}
				under = append(under, StartBarrier(comms[i]))
				if o, err := request.Wait(within(t)); err != nil || !o.Reproducible || !sameBits(v, want) {
					t.Errorf("rank %d: persistent: %+v %v", i, o, err)
				}
			}
			for _, u := range under {
				if _, err := u.Wait(within(t)); err != nil {
					t.Errorf("rank %d: %v", i, err)
				}
			}
			for k := range vectors {
				if !sameBits(vectors[k], want) {
					t.Errorf("rank %d: sum %d has other bits", i, k)
				}
			}
		})
		leave(t, comms)
	}
}

// TestRevokeAmongReproducible: a communicator that is revoked fails the sums under way, and what was lent for them is
// not lent to the sums of the next one while a loop still writes there.
func TestRevokeAmongReproducible(t *testing.T) {
	const n, length = 3, 20_001
	hosts, members := joinAs(t, names(n), patient)
	for _, way := range []GroupOption{OnTreeOfHosts(), OnHosts()} {
		comms := form(t, "job", hosts, members, way, Reproducible())
		in := hostile[float32](n, length)
		var under sync.WaitGroup
		for i, c := range comms {
			under.Go(func() {
				for {
					v := slices.Clone(in[i])
					if _, err := Allreduce(within(t), c, reduce.Sum, v, v); err != nil {
						wantRevoked(t, err, 1)
						return
					}
				}
			})
		}
		sumsOf := func() { // on its own, beside
			own := form(t, "other", hosts, members, way, Reproducible())
			for range 20 {
				sumsHostile[float32](t, own, 5000)
			}
			leave(t, own)
		}
		sumsOf()
		comms[1].Revoke()
		sumsOf()
		under.Wait()
		sumsHostile[float32](t, shrink(t, comms), 300)
	}
}
