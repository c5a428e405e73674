package hostlib

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/check/reducetest"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// scattered are numbers of any size, some of which are none, by member.
func scattered[T float32 | float64](members, length int) [][]T {
	r := rand.New(rand.NewPCG(uint64(members), uint64(length)))
	all := make([][]T, members)
	for i := range all {
		all[i] = make([]T, length)
		for j := range all[i] {
			switch x := r.NormFloat64(); r.IntN(500) {
			case 0:
				all[i][j] = T([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1)}[r.IntN(4)])
			default:
				all[i][j] = T(math.Ldexp(x, r.IntN(20)-j/100%90))
			}
		}
	}
	return all
}

// fixedOracle returns the sum of vectors, whose bits package reduce defines.
func fixedOracle[T float32 | float64](t testing.TB, in [][]T) []T {
	t.Helper()
	f, err := reduce.FixedOf(reduce.TypeOf[T](), len(in))
	if err != nil {
		t.Fatal(err)
	}
	all := make([][]byte, len(in))
	for i := range all {
		all[i] = reduce.Bytes(in[i])
	}
	out := make([]T, len(in[0]))
	copy(reduce.Bytes(out), reducetest.Fixed(f, all))
	return out
}

func sameBits[T reduce.Element](a, b []T) bool { return bytes.Equal(reduce.Bytes(a), reduce.Bytes(b)) }

// sumsReproducibly checks every collective that sums, by the members' order of the vectors in: order[rank] is
// whose vector a rank has. It returns the outcomes of the allreduces.
func sumsReproducibly[T float32 | float64](t testing.TB, comms []*Communicator, order []int, length int) (outcomes []Outcome) {
	t.Helper()
	ctx, n := within(t), len(comms)
	in := scattered[T](n, length)
	want := fixedOracle(t, in)
	parts := make([]int, n)
	for i := range parts {
		parts[i] = length / n
	}
	parts[n/2] += length % n
	outcomes = make([]Outcome, n)
	each(n, func(i int) {
		own := in[order[i]]
		check := func(what string, o Outcome, err error, got, want []T) {
			if err != nil || !o.Reproducible || !sameBits(got, want) {
				at := -1
				for j := range got {
					if !sameBits(got[j:j+1], want[j:j+1]) {
						at = j
						break
					}
				}
				t.Errorf("rank %d: %s of %d %T: %+v, %v; element %d differs", i, what, length, own, o, err, at)
			}
		}
		v := slices.Clone(own)
		var err error
		outcomes[i], err = Allreduce(ctx, comms[i], reduce.Sum, v, v)
		check("allreduce in place", outcomes[i], err, v, want)
		out := make([]T, length)
		o, err := Allreduce(ctx, comms[i], reduce.Sum, own, out)
		check("allreduce", o, err, out, want)
		clear(out)
		root := n - 1
		if o, err = Reduce(ctx, comms[i], reduce.Sum, root, own, out); i == root {
			check("reduce", o, err, out, want)
		} else if err != nil {
			t.Error(err)
		}
		at := 0
		for _, k := range parts[:i] {
			at += k
		}
		part := make([]T, parts[i])
		o, err = ReduceScatterv(ctx, comms[i], reduce.Sum, own, part, parts)
		check("reduce-scatterv", o, err, part, want[at:at+parts[i]])
		if length%n == 0 { // in place
			v := slices.Clone(own)
			k := length / n
			o, err = ReduceScatter(ctx, comms[i], reduce.Sum, v, v[i*k:(i+1)*k])
			check("reduce-scatter", o, err, v[i*k:(i+1)*k], want[i*k:(i+1)*k])
		}
		if !sameBits(own, in[order[i]]) {
			t.Errorf("rank %d: its input has changed", i)
		}
		o, err = Scan(ctx, comms[i], reduce.Sum, own, out)
		if i == n-1 {
			check("scan", o, err, out, want)
		}
		for j := range out {
			out[j] = T(j)
		}
		o, err = Exscan(ctx, comms[i], reduce.Sum, own, out)
		if i == 0 && length > 2 && out[2] != 2 {
			t.Errorf("exscan has written to rank 0: %v", out[:3])
		}
		if err != nil || !o.Reproducible {
			t.Errorf("exscan: %+v %v", o, err)
		}
		// All else is as without it.
		greatest := []T{T(i) / 3}
		if o, err := Allreduce(ctx, comms[i], reduce.Max, greatest, greatest); err != nil || o.Reproducible || greatest[0] != T(n-1)/3 {
			t.Errorf("max: rank %d has %v, %+v, %v", i, greatest, o, err)
		}
	})
	return outcomes
}

// ordered returns 0 to n-1, and back, from k on.
func ordered(n, k int) []int {
	order := make([]int, n)
	for i := range order {
		order[(i+k)%n] = i
	}
	if k%2 == 1 {
		slices.Reverse(order)
	}
	return order
}

// TestReproducible: sums have the same bits on trees of hosts, by every algorithm, over trees of switches of several
// shapes, with several processes of a host, and for members in another order.
func TestReproducible(t *testing.T) {
	names := []string{"h0", "h1", "h2", "h3", "h4", "h5", "h6"}
	lengths := fewer([]int{0, 1, 7, 33, 1001, 40_000}, []int{1, 33, 10_000})[0]
	for _, options := range [][]GroupOption{
		{OnTreeOfHosts()}, {OnHosts(RecursiveDoubling)}, {OnHosts(Ring)}, {OnHosts(Rabenseifner)}, {OnHosts(Linear)},
		{OnHosts(Binomial)}, {OnHosts(Halving, Pairwise, RingGather, Chain)}, {OnHosts()}, {},
	} {
		for _, n := range fewer(1, 2, 7) {
			hosts, members := joinAs(t, names[:n])
			comms := form(t, "job", hosts, members, append(options, Reproducible())...)
			for i, length := range lengths {
				sumsReproducibly[float32](t, comms, ordered(n, i), length)
				sumsReproducibly[float64](t, comms, ordered(n, i+1), length)
			}
			leave(t, comms)
		}
	}
}

func TestReproducibleOnSwitches(t *testing.T) {
	f := newFabric(t, 2, nil)
	hosts, members := f.join()
	for name, options := range map[string][]GroupOption{"one tree": {OnTree()}, "stripes": {Stripes(2)}, "roots": {Roots(2)}, "authenticated": {OnTree(), Authenticated()}} {
		t.Run(name, func(t *testing.T) {
			comms := form(t, name, hosts, members, append(options, Reproducible())...)
			offloaded(t, comms, 0)
			for i, length := range []int{1, fewer(100_000, 20_000)[0]} {
				wantTransport(t, sumsReproducibly[float32](t, comms, ordered(4, i), length), Offload)
				wantTransport(t, sumsReproducibly[float64](t, comms, ordered(4, i+2), length), Offload)
			}
			leave(t, comms)
		})
	}
}

// sumsOnSwitches runs a Reproducible sum of float32, which must go over switches.
func sumsOnSwitches(t testing.TB, comms []*Communicator) {
	t.Helper()
	in := scattered[float32](len(comms), 1000)
	want := fixedOracle(t, in)
	each(len(comms), func(i int) {
		o, err := Allreduce(within(t), comms[i], reduce.Sum, in[i], in[i])
		if err != nil || o.Transport != Offload || !sameBits(in[i], want) {
			t.Errorf("rank %d: %+v, %v", i, o, err)
		}
	})
}

// TestReproducibleOnIntegers: switches that add integers, and find the greatest, carry such a group, and no other
// one of these types.
func TestReproducibleOnIntegers(t *testing.T) {
	f := newFabric(t, 1, func(c *agentd.Config) {
		c.Capability.Functions = topology.FunctionsOf(reduce.Sum, reduce.Max)
		c.Capability.Types = topology.TypesOf(reduce.Int32, reduce.Int64, reduce.Uint32)
	})
	hosts, members := f.join()
	sums := []GroupOption{OnlyFunctions(reduce.Sum), OnlyTypes(reduce.Float32, reduce.Float64)}
	plain := form(t, "plain", hosts, members, sums...)
	if via, why := plain[0].Transport(); via != HostTree || !strings.Contains(why, "float32") {
		t.Errorf("it would go by %v because %q", via, why)
	}
	leave(t, plain)
	comms := form(t, "job", hosts, members, append(sums, Reproducible())...)
	offloaded(t, comms, 0)
	sumsOnSwitches(t, comms)
	e, err := comms[0].Explain(Question{Collective: "allreduce", Elements: 1000, Type: reduce.Float32, Operator: reduce.Sum})
	if err != nil || !strings.Contains(e.Reason, "Reproducible") {
		t.Errorf("%v %v", e, err)
	}
	leave(t, comms)
}

// TestReproducibleOnNarrowIntegers: four members sum float32 on switches that know no int64, and float64 on hosts.
func TestReproducibleOnNarrowIntegers(t *testing.T) {
	f := newFabric(t, 1, func(c *agentd.Config) {
		c.Capability.Functions = topology.FunctionsOf(reduce.Sum, reduce.Max)
		c.Capability.Types = topology.TypesOf(reduce.Int32, reduce.Uint32)
	})
	hosts, members := f.join()
	wide := form(t, "wide", hosts, members, OnlyFunctions(reduce.Sum), OnlyTypes(reduce.Float64), Reproducible())
	if via, why := wide[0].Transport(); via != HostTree || !strings.Contains(why, "int64") {
		t.Errorf("it would go by %v because %q", via, why)
	}
	leave(t, wide)
	comms := form(t, "job", hosts, members, OnlyFunctions(reduce.Sum), OnlyTypes(reduce.Float32), Reproducible())
	offloaded(t, comms, 0)
	sumsOnSwitches(t, comms)
	leave(t, comms)
}

func TestReproducibleProcesses(t *testing.T) {
	hosts, members := joinProcesses(t, []int{2, 1, 3})
	comms := form(t, "job", hosts, members, Reproducible())
	for i, length := range []int{1, 20_000} {
		sumsReproducibly[float32](t, comms, ordered(6, i), length)
		sumsReproducibly[float64](t, comms, ordered(6, i), length)
	}
	e, err := comms[1].Explain(Question{Collective: "allreduce", Elements: 1000, Type: reduce.Float32, Operator: reduce.Sum})
	if err != nil || e.Chosen.Transport != Hosts {
		t.Errorf("%v %v", e, err)
	}
	leave(t, comms)
}

// TestReproducibleFailover: the switch at the root dies in the middle of several sums, which go on over another tree
// or over hosts, to the same bits.
func TestReproducibleFailover(t *testing.T) {
	for _, spines := range []int{1, 2} {
		t.Run(fmt.Sprintf("spines=%d", spines), func(t *testing.T) {
			narrow, wide := scattered[float32](4, 150_000), scattered[float64](4, 100_000)
			wants, wantWide := fixedOracle(t, narrow), fixedOracle(t, wide)
			var others []*Request
			_, comms, outcomes, _ := rootDies(t, spines, func(comms []*Communicator) (requests []*Request) {
				for i, c := range comms {
					requests = append(requests, StartAllreduce(c, reduce.Sum, narrow[i], narrow[i]))
					others = append(others, StartAllreduce(c, reduce.Sum, wide[i], wide[i]))
				}
				return requests
			}, OnTree(), Reproducible())
			for i, r := range others {
				if _, err := r.Wait(within(t)); err != nil {
					t.Fatal(err)
				}
				if !outcomes[i].Reproducible || !sameBits(narrow[i], wants) || !sameBits(wide[i], wantWide) {
					t.Errorf("rank %d has other bits: %+v", i, outcomes[i])
				}
			}
			leave(t, comms)
		})
	}
}

// Shapes of the trees of these tests: of up to 7 hosts, and of the switches between four, also where the results of
// parts, or the numbers of processes, are summed as float32.
var (
	onHosts    = reducetest.Shape{Members: 7, Switches: 7, Depth: 3, Children: 4}
	onSwitches = reducetest.Shape{Members: 4, Switches: 3, Depth: 2, Children: 4}
)

// checkCompressed checks one member's sum by the bound that docs/functions.md gives.
func checkCompressed(t testing.TB, rank int, in [][]float32, out []float32, half reduce.Type, shape reducetest.Shape) {
	t.Helper()
	all := make([][]byte, len(in))
	for i := range all {
		all[i] = reduce.Bytes(in[i])
	}
	if held, err := reducetest.CheckCompressed(half, shape, all, reduce.Bytes(out)); err != nil || held != len(out) {
		t.Errorf("rank %d: %d of %d elements, %v", rank, held, len(out), err)
	}
}

// sumCompressed runs and checks an allreduce of vectors that a packet has no room for.
func sumCompressed(t testing.TB, comms []*Communicator, length int, half reduce.Type, shape reducetest.Shape) []Outcome {
	t.Helper()
	in := scatteredNumbers(len(comms), length)
	outcomes, out := sumAll(t, comms, in)
	checkCompressed(t, 0, in, out[0], half, shape)
	for i := range out {
		if !sameBits(out[i], out[0]) || outcomes[i].Compressed != half {
			t.Errorf("ranks 0 and %d have not the same bits, or it says nothing of it: %+v", i, outcomes[i])
		}
	}
	return outcomes
}

// scatteredNumbers are scattered without what is no number, within the range of float16.
func scatteredNumbers(members, length int) [][]float32 {
	r := rand.New(rand.NewPCG(uint64(members), uint64(length)))
	all := make([][]float32, members)
	for i := range all {
		all[i] = make([]float32, length)
		for j := range all[i] {
			all[i][j] = float32(math.Ldexp(r.NormFloat64(), r.IntN(24)-20))
		}
	}
	return all
}

func TestCompressed(t *testing.T) {
	for _, half := range []reduce.Type{reduce.BFloat16, reduce.Float16} {
		for _, n := range fewer(1, 2, 7) {
			names := []string{"h0", "h1", "h2", "h3", "h4", "h5", "h6"}[:n]
			hosts, members := joinAs(t, names)
			comms := form(t, "job", hosts, members, Compressed(half))
			for _, length := range []int{elementsOfChunk + 1, 50_000} {
				for _, o := range sumCompressed(t, comms, length, half, onHosts) {
					if half := (length + 2*elementsOfChunk - 1) / (2 * elementsOfChunk); o.Chunks != half {
						t.Errorf("%d packets, want %d", o.Chunks, half)
					}
				}
			}
			each(n, func(i int) { // what a packet has room for, and other reductions, are not
				v, w := make([]float32, elementsOfChunk), make([]float32, 1000)
				v[0], w[0] = 1.0001, 1.0001
				o, err := Allreduce(within(t), comms[i], reduce.Sum, v, v)
				p, failed := Allreduce(within(t), comms[i], reduce.Max, w, w)
				if err != nil || failed != nil || o.Compressed != 0 || p.Compressed != 0 || w[0] != 1.0001 || math.Abs(float64(v[0])/float64(n)-1.0001) > 1e-6 {
					t.Errorf("%+v %v, %+v %v: %v %v", o, err, p, failed, v[0], w[0])
				}
			})
			leave(t, comms)
		}
	}
}

func TestCompressedOnSwitches(t *testing.T) {
	f := newFabric(t, 2, nil)
	hosts, members := f.join()
	for name, options := range map[string][]GroupOption{"one tree": nil, "stripes": {Stripes(2)}, "roots": {Roots(2)}, "encrypted": {Encrypted()}} {
		t.Run(name, func(t *testing.T) {
			comms := form(t, name, hosts, members, append(options, Compressed(reduce.BFloat16))...)
			offloaded(t, comms, 0)
			for _, length := range fewer(500_000, 50_000) {
				wantTransport(t, sumCompressed(t, comms, length, reduce.BFloat16, onSwitches), Offload)
			}
			in, out := scatteredNumbers(4, 10_000), make([]float32, 10_000)
			each(4, func(i int) {
				if o, err := Reduce(within(t), comms[i], reduce.Sum, 2, in[i], out[:map[bool]int{true: 10_000}[i == 2]]); err != nil || o.Compressed != reduce.BFloat16 {
					t.Errorf("%+v %v", o, err)
				}
			})
			checkCompressed(t, 2, in, out, reduce.BFloat16, onSwitches)
			leave(t, comms)
		})
	}
}

func TestCompressedProcesses(t *testing.T) {
	hosts, members := joinProcesses(t, []int{2, 1, 3})
	comms := form(t, "job", hosts, members, Compressed(reduce.BFloat16))
	sumCompressed(t, comms, 200_000, reduce.BFloat16, onHosts)
	leave(t, comms)
}

func TestCompressedFailover(t *testing.T) {
	in := scatteredNumbers(4, 400_000)
	out := make([][]float32, 4)
	_, comms, outcomes, _ := rootDies(t, 2, func(comms []*Communicator) (requests []*Request) {
		for i, c := range comms {
			out[i] = slices.Clone(in[i])
			requests = append(requests, StartAllreduce(c, reduce.Sum, out[i], out[i]))
		}
		return requests
	}, Compressed(reduce.BFloat16))
	checkCompressed(t, 0, in, out[0], reduce.BFloat16, onHosts.Or(onSwitches))
	for i := range out {
		if outcomes[i].Compressed != reduce.BFloat16 || !sameBits(out[i], out[0]) {
			t.Errorf("rank %d has other bits: %+v", i, outcomes[i])
		}
	}
	leave(t, comms)
}

func TestCodingsThatCannotBe(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1"})
	for name, options := range map[string][]GroupOption{
		"of another type": {Compressed(reduce.Int32)}, "both": {Compressed(reduce.Float16), Reproducible()},
		"blocks": {BlockFloat(), Reproducible()}, "compressed blocks": {BlockFloat(), Compressed(reduce.BFloat16)},
	} {
		if _, err := hosts[0].Communicator(within(t), "test", members, options...); !errors.Is(err, ErrArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := optionsOf([]GroupOption{Reproducible()}).checkCoding(reduce.MaxFixedMembers + 1); !errors.Is(err, ErrArgument) {
		t.Error(err)
	}
	for _, options := range [][]GroupOption{nil, {Reproducible()}, {Compressed(reduce.BFloat16)}, {Compressed(reduce.Float16)}, {Expect(pathsel.Allreduce, 8)}} {
		var sent groupOptions
		optionsOf(options).sent().option()(&sent)
		if a, b := digestOf("x", members, 1432, 64, sent), digestOf("x", members, 1432, 64, optionsOf(options)); a != b {
			t.Error("an invitation has other options")
		}
	}
}
