package hostlib

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/driver/hooks"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// floats are what the members of a group give to a sum of float32: of another
// size in each packet's worth, and partly at each member.
func floats(members, length int) [][]float32 {
	r := rand.New(rand.NewPCG(uint64(members), uint64(length)))
	all := make([][]float32, members)
	for i := range all {
		all[i] = make([]float32, length)
		for j := range all[i] {
			size := j/elementsOfChunk%40 - 20 - 3*i
			all[i][j] = float32(math.Ldexp(r.NormFloat64(), size))
		}
	}
	return all
}

// elementsOfChunk is how many float32 a packet carries by default.
const elementsOfChunk = 1432 / 4

// checkFloats checks one member's sum of the vectors in by the bound that
// docs/functions.md gives.
func checkFloats(t testing.TB, rank int, in [][]float32, out []float32) {
	t.Helper()
	n := float64(len(in))
	for at := 0; at < len(out); at += elementsOfChunk {
		end := min(at+elementsOfChunk, len(out))
		greatest := 0.0
		for _, v := range in {
			for _, x := range v[at:end] {
				greatest = max(greatest, math.Abs(float64(x)))
			}
		}
		for j := at; j < end; j++ {
			exact := 0.0
			for _, v := range in {
				exact += float64(v[j])
			}
			bound := n*max(0x1p-127, greatest*n/(0x1p30-n/4)) + math.Abs(exact)*0x1p-23
			if got := float64(out[j]); !(math.Abs(got-exact) < bound) {
				t.Errorf("rank %d: element %d is %v, want %v within %v", rank, j, got, exact, bound)
				return
			}
		}
	}
}

// sumFloats runs and checks an allreduce of all members in block floating point.
func sumFloats(t testing.TB, comms []*Communicator, length int) []Outcome {
	t.Helper()
	in := floats(len(comms), length)
	outcomes, out := sumAll(t, comms, in)
	checkOutcomes(t, in, out, outcomes)
	return outcomes
}

// checkOutcomes checks an allreduce in block floating point.
func checkOutcomes(t testing.TB, in, out [][]float32, outcomes []Outcome) {
	t.Helper()
	for i := range out {
		checkFloats(t, i, in, out[i])
		if !outcomes[i].BlockFloat {
			t.Errorf("rank %d: the outcome says nothing of block floating point: %+v", i, outcomes[i])
		}
		if !slices.Equal(reduce.Bytes(out[i]), reduce.Bytes(out[0])) {
			t.Errorf("ranks 0 and %d have not the same bits", i)
		}
	}
}

func TestBlockFloatOverHosts(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7} {
		t.Run(fmt.Sprintf("hosts=%d", n), func(t *testing.T) {
			names := make([]string, n)
			for i := range names {
				names[i] = fmt.Sprintf("h%d", i)
			}
			hosts, members := joinAs(t, names)
			comms := form(t, "job", hosts, members, BlockFloat())
			for _, length := range []int{0, 1, elementsOfChunk, 50_000} {
				wantTransport(t, sumFloats(t, comms, length), HostTree)
			}
			ctx := within(t)
			in := floats(n, 1000)
			each(n, func(i int) {
				for root := range n {
					before, out := slices.Clone(in[i]), make([]float32, 1000)
					outcome, err := Reduce(ctx, comms[i], reduce.Sum, root, in[i], out)
					if err != nil || !outcome.BlockFloat || !slices.Equal(before, in[i]) {
						t.Errorf("reduce to %d: rank %d has %+v, %v", root, i, outcome, err)
					}
					if i == root {
						checkFloats(t, i, in, out)
					}
				}
				// All else is as without it.
				greatest, doubles, copied := []float32{float32(i) / 3}, []float64{0.1}, []float32{float32(i) / 3}
				outcome, err := Allreduce(ctx, comms[i], reduce.Max, greatest, greatest)
				if err != nil || outcome.BlockFloat || greatest[0] != float32(n-1)/3 {
					t.Errorf("max: rank %d has %v, %+v, %v", i, greatest, outcome, err)
				}
				outcome, err = Allreduce(ctx, comms[i], reduce.Sum, doubles, doubles)
				if err != nil || outcome.BlockFloat {
					t.Errorf("float64: rank %d has %v, %+v, %v", i, doubles, outcome, err)
				}
				outcome, err = Broadcast(ctx, comms[i], n-1, copied)
				if err != nil || outcome.BlockFloat || copied[0] != float32(n-1)/3 {
					t.Errorf("broadcast: rank %d has %v, %+v, %v", i, copied, outcome, err)
				}
			})
			leave(t, comms)
		})
	}
}

// A NaN or an infinity of one member makes its packet's worth NaN at all, and
// nothing else.
func TestBlockFloatSpecials(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2"})
	comms := form(t, "job", hosts, members, BlockFloat())
	ctx := within(t)
	each(3, func(i int) {
		v := make([]float32, 6*elementsOfChunk)
		v[5*elementsOfChunk] = float32(math.Copysign(0, -1))
		switch i {
		case 0:
			v[elementsOfChunk+3] = float32(math.NaN())
			v[4*elementsOfChunk] = math.MaxFloat32
		case 1:
			v[3*elementsOfChunk-1] = float32(math.Inf(-1))
			v[4*elementsOfChunk] = math.MaxFloat32
		}
		v[0], v[3*elementsOfChunk] = 1.5, math.SmallestNonzeroFloat32
		if _, err := Allreduce(ctx, comms[i], reduce.Sum, v, v); err != nil {
			t.Error(err)
		}
		for j, x := range v {
			want := float32(0)
			switch {
			case j == 0:
				want = 4.5
			case j == 4*elementsOfChunk:
				want = float32(math.Inf(1))
			case j/elementsOfChunk == 1, j/elementsOfChunk == 2:
				want = float32(math.NaN())
			}
			if math.Float32bits(x) != math.Float32bits(want) {
				t.Errorf("rank %d: element %d is %x, want %x", i, j, x, want)
				return
			}
		}
	})
	leave(t, comms)
}

// Switches that know block32 and not float32 carry a group that allows it, and
// no other one.
func TestBlockFloatOffload(t *testing.T) {
	f := newFabric(t, 2, func(c *agentd.Config) {
		c.Capability.Functions = topology.FunctionsOf(reduce.Sum)
		c.Capability.Types = topology.TypesOf(reduce.Int32, reduce.Block32)
	})
	hosts, members := f.join()
	exact := form(t, "exact", hosts, members, OnlyFunctions(reduce.Sum), OnlyTypes(reduce.Float32))
	if via, why := exact[0].Transport(); via != HostTree || !strings.Contains(why, "float32") {
		t.Errorf("it would go by %v because %q", via, why)
	}
	leave(t, exact)
	comms := form(t, "job", hosts, members, OnlyFunctions(reduce.Sum), OnlyTypes(reduce.Float32), BlockFloat())
	offloaded(t, comms, 0)
	for _, length := range []int{0, 7, 100_000} {
		wantTransport(t, sumFloats(t, comms, length), Offload)
	}
	ctx := within(t)
	each(len(comms), func(i int) {
		v := []float32{float32(i), 0.1}
		outcome, err := Broadcast(ctx, comms[i], 2, v)
		if err != nil || outcome.Transport != Offload || v[0] != 2 {
			t.Errorf("broadcast: rank %d has %v by %v, %v", i, v, outcome.Transport, err)
		}
	})
	leave(t, comms)
}

func TestBlockFloatWithLosses(t *testing.T) {
	faults := transport.Faults{Loss: 0.02, Duplicate: 0.02, Reorder: 0.05, Seed: 7}
	var mu sync.Mutex
	f := newFabric(t, 2, func(c *agentd.Config) {
		c.Faults = faults
		faults.Seed += 1000
	})
	hosts, members := f.hooked(hooks.Hooks{
		Data: func(c transport.Conn) transport.Conn {
			mu.Lock()
			defer mu.Unlock()
			faults.Seed++
			conn, err := transport.WithFaults(c, faults)
			if err != nil {
				t.Error(err)
			}
			return conn
		},
	})
	comms := form(t, "job", hosts, members, BlockFloat())
	offloaded(t, comms, 0)
	for range 3 {
		wantTransport(t, sumFloats(t, comms, 60_000), Offload)
	}
	leave(t, comms)
	repaired := uint64(0)
	for _, c := range comms {
		repaired += c.Stats().Session.Probes
	}
	if repaired == 0 {
		t.Error("nothing was ever repaired")
	}
}

// The root switch dies in the middle of a sum: what some members have is given
// to the others, and the rest is reduced over another tree or over hosts.
func TestBlockFloatChangesEpoch(t *testing.T) {
	for spines := 1; spines <= 2; spines++ {
		t.Run(fmt.Sprintf("spines=%d", spines), func(t *testing.T) {
			var in, out [][]float32
			_, comms, outcomes, _ := rootDies(t, spines, func(comms []*Communicator) (requests []*Request) {
				in, out = floats(len(comms), 200_000), make([][]float32, len(comms))
				for i, c := range comms {
					out[i] = slices.Clone(in[i])
					requests = append(requests, StartAllreduce(c, reduce.Sum, out[i], out[i]))
				}
				return requests
			}, BlockFloat())
			checkOutcomes(t, in, out, outcomes)
			if spines == 1 {
				wantTransport(t, outcomes, Mixed)
			}
			sumFloats(t, comms, 1000)
			leave(t, comms)
		})
	}
}

func TestBlockFloatIsNoType(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1"})
	_, err := hosts[0].Communicator(within(t), "test", members, OnlyTypes(reduce.Block32))
	if !errors.Is(err, ErrArgument) || !strings.Contains(err.Error(), "BlockFloat") {
		t.Errorf("got %v, want that no vector has this type", err)
	}
}

func TestPurposeThatIsNone(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1"})
	for name, option := range map[string]GroupOption{
		"bytes": Expect(pathsel.Allreduce, -1), "collective": Expect(200, 0), "criterion": ChooseBy(100), "weights": ChooseByWeights(pathsel.Weights{pathsel.LeastLoad: -1}),
	} {
		if _, err := hosts[0].Communicator(within(t), "test", members, option); !errors.Is(err, ErrArgument) || !errors.Is(err, pathsel.ErrRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a group asks of switches.
func TestTypesOnSwitches(t *testing.T) {
	sums := OnlyFunctions(reduce.Sum)
	for name, test := range map[string]struct {
		options []GroupOption
		want    topology.Types
	}{
		"default":       {nil, topology.AllTypes() &^ topology.TypesOf(reduce.Block32)},
		"all":           {[]GroupOption{BlockFloat()}, topology.AllTypes()},
		"only sums":     {[]GroupOption{sums, BlockFloat()}, topology.AllTypes() &^ topology.TypesOf(reduce.Float32)},
		"only float32":  {[]GroupOption{BlockFloat(), OnlyTypes(reduce.Float32)}, topology.TypesOf(reduce.Float32, reduce.Block32)},
		"float32 sums":  {[]GroupOption{BlockFloat(), sums, OnlyTypes(reduce.Float32)}, topology.TypesOf(reduce.Block32)},
		"no sums":       {[]GroupOption{BlockFloat(), OnlyFunctions(reduce.Min)}, topology.AllTypes() &^ topology.TypesOf(reduce.Block32)},
		"no float32":    {[]GroupOption{BlockFloat(), OnlyTypes(reduce.Int32)}, topology.TypesOf(reduce.Int32)},
		"not allowed":   {[]GroupOption{sums, OnlyTypes(reduce.Float32)}, topology.TypesOf(reduce.Float32)},
		"reproducible":  {[]GroupOption{Reproducible(), sums, OnlyTypes(reduce.Float32, reduce.Float64)}, topology.TypesOf(reduce.Int32, reduce.Int64, reduce.Uint32)},
		"narrow":        {[]GroupOption{Reproducible(), sums, OnlyTypes(reduce.Float32)}, topology.TypesOf(reduce.Int32, reduce.Uint32)},
		"and others":    {[]GroupOption{Reproducible(), OnlyTypes(reduce.Float64)}, topology.TypesOf(reduce.Float64, reduce.Int64, reduce.Uint32)},
		"compressed":    {[]GroupOption{Compressed(reduce.BFloat16), sums, OnlyTypes(reduce.Float32)}, topology.TypesOf(reduce.Float32, reduce.BFloat16)},
		"several types": {[]GroupOption{sums, BlockFloat(), OnlyTypes(reduce.Float32, reduce.Int64)}, topology.TypesOf(reduce.Block32, reduce.Int64)},
	} {
		if _, got := optionsOf(test.options).needs(64); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
	many := optionsOf([]GroupOption{Reproducible(), sums, OnlyTypes(reduce.Float32)})
	if _, got := many.needs(65); got != topology.TypesOf(reduce.Int64, reduce.Uint32) {
		t.Errorf("of 65 members: %v", got)
	}
}

// sumAll runs an allreduce of all members' vectors, in place at every second one.
func sumAll(t testing.TB, comms []*Communicator, in [][]float32) ([]Outcome, [][]float32) {
	t.Helper()
	ctx, n := within(t), len(comms)
	outcomes, out := make([]Outcome, n), make([][]float32, n)
	each(n, func(i int) {
		given := slices.Clone(in[i])
		if out[i] = given; i%2 == 0 { // the others reduce in place
			out[i] = make([]float32, len(given))
		}
		var err error
		if outcomes[i], err = Allreduce(ctx, comms[i], reduce.Sum, given, out[i]); err != nil {
			t.Errorf("rank %d: %v", i, err)
		}
		if i%2 == 0 && !slices.Equal(given, in[i]) {
			t.Errorf("rank %d: its input has changed", i)
		}
	})
	return outcomes, out
}
