package timing

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Config){
		"collective": func(c *Config) { c.Collective = "sum" },
		"transport":  func(c *Config) { c.Transport = "" },
		"pace":       func(c *Config) { c.Pace = "slow" },
		"function":   func(c *Config) { c.Function = reduce.BXor },
		"located":    func(c *Config) { c.Function = reduce.MaxLoc },
		"type":       func(c *Config) { c.Type = reduce.NoType },
		"no sizes":   func(c *Config) { c.Bytes = nil },
		"size":       func(c *Config) { c.Bytes = []int{6} },
		"negative":   func(c *Config) { c.Bytes = []int{-4} },
		"iterations": func(c *Config) { c.Iterations = []int{1, 2, 3} },
		"none":       func(c *Config) { c.Iterations = []int{0} },
		"broadcast":  func(c *Config) { c.Collective, c.Type = Broadcast, reduce.Block32 },
		"barrier":    func(c *Config) { c.Collective, c.Type = Barrier, reduce.Block32 },
		"blocks":     func(c *Config) { c.Function, c.Type = reduce.Max, reduce.Block32 },
		"rate":       func(c *Config) { c.Rate = -1 },
	} {
		c := DefaultConfig()
		change(&c)
		if err := c.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRow(t *testing.T) {
	r := Row{Ranks: 8, Type: "float32", Bytes: 1 << 20, Iterations: 1000, Transport: "offload", By: "agent-cpu+p4", Right: true}
	var times []float64
	for i := range 1000 {
		times = append(times, float64(100*((i*37)%1000+1))) // 0.1 to 100 ms, in disorder
	}
	r.Tail = TailOf(times)
	r.Goodput = goodput(r.Bytes, r.Median, 1e9)
	const whole = "tributary,8,float32,1048576,1000,100.0,50100.0,99100.0,0.1674,offload,right,90100.0,100000.0,100000.0,agent-cpu+p4"
	if got := r.String(); got != whole {
		t.Errorf("%s, want %s", got, whole)
	}
	if strings.Count(Header, ",") != strings.Count(whole, ",") {
		t.Error("the header has another number of columns")
	}
	r.Tail, r.Goodput, r.Right, r.By = TailOf([]float64{5}), goodput(8, 5, 0), false, ""
	if got, want := r.String(), "tributary,8,float32,1048576,1000,5.0,5.0,5.0,,offload,wrong,5.0,5.0,5.0,"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, line := range []string{whole, r.String()} {
		if back, err := ParseRow(line); err != nil || back.String() != line {
			t.Errorf("%s, %v, want %s", back, err, line)
		}
	}
	for _, line := range []string{"", Header, "x" + whole, whole + ",1", strings.Replace(whole, "1048576", "many", 1)} {
		if _, err := ParseRow(line); !errors.Is(err, ErrRow) {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// TestTailOf counts, for each quantile, how many times are below it.
func TestTailOf(t *testing.T) {
	if got := TailOf(nil); got != (Tail{}) {
		t.Errorf("of no times: %+v", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SliceOfN(rapid.Float64Range(0, 1e6), 1, 300).Draw(t, "times")
		tail := TailOf(slices.Clone(times))
		for share, x := range map[float64]float64{0: tail.Min, 0.5: tail.Median, 0.9: tail.P90, 0.99: tail.P99, 0.999: tail.P999, 1: tail.Max} {
			below, upTo := 0, 0
			for _, y := range times {
				if y < x {
					below++
				}
				if y <= x {
					upTo++
				}
			}
			if want := min(len(times)-1, int(share*float64(len(times)))); below > want || upTo <= want {
				t.Fatalf("quantile %v is %v: %d are below it and %d up to it, of %d", share, x, below, upTo, len(times))
			}
		}
	})
}

func TestWays(t *testing.T) {
	for _, test := range []struct {
		hosts, offload, mixed int64
		want                  hostlib.Transport
	}{{3, 0, 0, hostlib.HostTree}, {0, 3, 0, hostlib.Offload}, {0, 0, 3, hostlib.Mixed}, {1, 1, 0, hostlib.Mixed}, {0, 2, 1, hostlib.Mixed}} {
		counts := make([]int64, 4)
		counts[hostlib.HostTree], counts[hostlib.Offload], counts[hostlib.Mixed] = test.hosts, test.offload, test.mixed
		if got := transportOf(counts); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
	c := Config{Transport: Offload}
	if !c.fits(hostlib.Offload) || c.fits(hostlib.Mixed) || c.fits(hostlib.HostTree) {
		t.Error("--transport offload fits others")
	}
}

// group returns the parts of all members in an allreduce.
func group[T reduce.Element](t *testing.T, c Config, size int) []*vectors[T] {
	t.Helper()
	all := make([]*vectors[T], 5)
	for rank := range all {
		part, err := newTask(place{rank: rank, ranks: len(all)}, c, size)
		if err != nil {
			t.Fatal(err)
		}
		all[rank] = part.(*vectors[T])
	}
	return all
}

// TestRight reduces by a loop of its own, in two orders, and has the results
// taken; then it harms them, and has them refused.
func TestRight(t *testing.T) {
	c := DefaultConfig()
	const chunk = 358 // elements of a packet
	all := group[float32](t, c, 4*10000)
	for number := range 3 {
		for _, v := range all {
			v.prepare(number + period)
		}
		last := all[len(all)-1]
		for i := range last.out {
			for r := range all {
				last.out[i] += all[(r+number)%len(all)].in[i]
			}
		}
		if !last.right() {
			t.Fatalf("operation %d: a right result is refused", number)
		}
		for name, harm := range map[string]func([]float32){
			"an element":             func(v []float32) { v[9999]++ },
			"two chunks in exchange": func(v []float32) { swap(v[:chunk], v[chunk:2*chunk]) },
			"a chunk left out":       func(v []float32) { clear(v[3*chunk : 4*chunk]) },
			"that of the next operation": func(v []float32) {
				last.shift = (number + 1 + period) * 31 % period
			},
		} {
			kept, shift := append([]float32(nil), last.out...), last.shift
			if harm(last.out); last.right() {
				t.Errorf("operation %d: %s: taken", number, name)
			}
			last.shift = shift
			copy(last.out, kept)
		}
	}
}

func swap(a, b []float32) {
	for i := range a {
		a[i], b[i] = b[i], a[i]
	}
}

// TestExact has every type and function, whose results must not depend on the
// order in which they are reduced.
func TestExact(t *testing.T) {
	for _, typ := range topology.AllTypes().List() {
		for _, f := range topology.AllFunctions().List() {
			c := DefaultConfig()
			c.Type, c.Function = typ, f
			if c.Validate() != nil {
				continue
			}
			kernel, err := reduce.KernelOf(f, c.elements())
			if err != nil {
				t.Fatal(err)
			}
			var forward, backward [][]byte
			for rank := range 24 {
				b := encodedPattern(c, rank)
				forward, backward = append(forward, b), append([][]byte{b}, backward...)
			}
			x, y := make([]byte, len(forward[0])), make([]byte, len(forward[0]))
			kernel(x, forward)
			kernel(y, backward)
			if string(x) != string(y) {
				t.Errorf("%s of %s depends on the order", f, typ)
			}
		}
	}
}

// encodedPattern returns one period of a member's vector.
func encodedPattern(c Config, rank int) []byte {
	part, err := newTask(place{rank: rank, ranks: rank + 1}, c, period*c.Type.Size())
	if err != nil {
		return nil
	}
	part.prepare(0)
	switch v := part.(type) {
	case *vectors[int32]:
		return reduce.Bytes(v.in)
	case *vectors[int64]:
		return reduce.Bytes(v.in)
	case *vectors[uint32]:
		return reduce.Bytes(v.in)
	case *vectors[uint64]:
		return reduce.Bytes(v.in)
	case *vectors[float32]:
		return reduce.Bytes(v.in)
	case *vectors[float64]:
		return reduce.Bytes(v.in)
	case *vectors[reduce.F16]:
		return reduce.Bytes(v.in)
	case *vectors[reduce.BF16]:
		return reduce.Bytes(v.in)
	}
	return nil
}
