package conformance

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/reduce"
)

// patience is after how long a silent member counts as dead: what holds up the test's process kills none.
const patience = 10 * time.Minute

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	t.Cleanup(cancel)
	return ctx
}

// form makes a communicator of n hosts on loopback, and returns each one's.
func form(t *testing.T, n int, options ...hostlib.GroupOption) []*hostlib.Communicator {
	t.Helper()
	var hosts []*hostlib.Host
	var members []hostlib.Member
	for i := range n {
		h, err := hostlib.Join(within(t), hostlib.Config{Name: fmt.Sprint("h", i), Leaf: fmt.Sprint("l", i%3), DeadAfter: patience})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := h.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		hosts, members = append(hosts, h), append(members, h.Member())
	}
	comms := make([]*hostlib.Communicator, n)
	all(n, func(rank int) {
		c, err := hosts[rank].Communicator(within(t), "c", members, options...)
		if err != nil {
			t.Error(err)
		}
		comms[rank] = c
	})
	if t.Failed() {
		t.FailNow()
	}
	return comms
}

func all(n int, do func(rank int)) {
	var g sync.WaitGroup
	for rank := range n {
		g.Go(func() { do(rank) })
	}
	g.Wait()
}

// formProcesses makes a communicator of hosts with so many processes each, whose ranks alternate.
func formProcesses(t *testing.T, counts []int, options ...hostlib.GroupOption) []*hostlib.Communicator {
	t.Helper()
	var hosts []*hostlib.Host
	var members []hostlib.Member
	for k := range slices.Max(counts) {
		for i, n := range counts {
			if k < n {
				h, err := hostlib.Join(within(t), hostlib.Config{Name: fmt.Sprint("h", i), Process: fmt.Sprint("p", k), DeadAfter: patience})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := h.Close(context.Background()); err != nil {
						t.Error(err)
					}
				})
				hosts, members = append(hosts, h), append(members, h.Member())
			}
		}
	}
	comms := make([]*hostlib.Communicator, len(hosts))
	all(len(hosts), func(rank int) {
		var err error
		if comms[rank], err = hosts[rank].Communicator(within(t), "c", members, options...); err != nil {
			t.Error(err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return comms
}

// TestProcesses: hosts with 1 to 4 processes pass, also 17 members on uneven ones, and one host alone.
func TestProcesses(t *testing.T) {
	hosts := [][]int{{4}, {2, 2}, {1, 3, 2}, {4, 3, 1, 4, 2, 3}}
	if *full {
		hosts = append(hosts, []int{2}, []int{3}, []int{1, 2}, []int{3, 1}, []int{4, 4}, []int{1, 1, 4}, []int{3, 3, 3}, []int{4, 4, 4, 4, 1})
	}
	for _, counts := range hosts {
		t.Run(fmt.Sprint(counts), func(t *testing.T) {
			selections := []Config{few(), long()}
			if !*full {
				cfg := long()
				cfg.Collectives = []string{"allreduce", "reduce", "broadcast", "barrier"}
				if len(counts) > 4 {
					cfg = Config{Types: []reduce.Type{reduce.Float32}, Functions: []reduce.Function{reduce.Sum}, Counts: []int{0, 1, 300}}
				}
				selections = []Config{cfg}
			}
			for _, cfg := range selections {
				if r := try(t, formProcesses(t, counts), cfg); r.Transports[hostlib.HostTree] == 0 {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}

// try runs the suite on a communicator, and returns what its lowest rank has counted.
func try(t *testing.T, comms []*hostlib.Communicator, cfg Config) Result {
	t.Helper()
	results := make([]Result, len(comms))
	all(len(comms), func(rank int) {
		var err error
		if results[rank], err = Run(within(t), comms[rank], cfg); err != nil {
			t.Error(err)
			comms[rank].Abort("it has failed")
		}
	})
	all(len(comms), func(rank int) {
		if err := comms[rank].Leave(within(t)); err != nil && !t.Failed() {
			t.Error(err)
		}
	})
	return results[0]
}

// full has every test run with every function, type and count, and with 1 to 17 members:
//
//	go test ./hostlib/conformance -full -timeout 120m
var full = flag.Bool("full", false, "run the whole suite by every algorithm")

// sizes are of communicators: all to 17, or the given ones.
func sizes(few ...int) []int {
	if !*full {
		return few
	}
	all := make([]int, 17)
	for i := range all {
		all[i] = i + 1
	}
	return all
}

// long is a selection of few functions and types, with vectors of several segments of shared memory.
func long() Config {
	return Config{
		Functions: []reduce.Function{reduce.Sum, reduce.MinLoc}, Types: []reduce.Type{reduce.Int32, reduce.BFloat16},
		Counts: []int{0, 1, 13, 140_000},
	}
}

// few is a selection that takes little time.
func few() Config {
	if *full {
		return Config{}
	}
	return Config{
		Functions: []reduce.Function{reduce.Sum, reduce.Max, reduce.BXor, reduce.MinLoc}, Types: []reduce.Type{reduce.Int32, reduce.Float64, reduce.BFloat16},
		Counts: []int{0, 1, 13, 3000},
	}
}

// TestAll: the whole suite passes on a communicator as it is by default.
func TestAll(t *testing.T) {
	r := try(t, form(t, 3), Config{Counts: []int{0, 1, 13, 400}})
	if r.Cases < 2000 || r.Transports[hostlib.HostTree] == 0 || r.Transports[hostlib.Hosts] == 0 {
		t.Errorf("%+v", r)
	}
}

// TestWrongResult: the suite finds a function that is wrong.
func TestWrongResult(t *testing.T) {
	x := &trial[int32]{run: &run{}, Case: Case{Count: 3}}
	_, err := x.finish(hostlib.Outcome{}, nil, []int32{1, 2, 3}, []int32{1, 2, 4}, nil, nil)
	if !errors.Is(err, ErrWrong) || !strings.Contains(err.Error(), "element 2 of 3 is 3, want 4") {
		t.Error(err)
	}
	if _, err := Run(t.Context(), form(t, 1)[0], Config{Collectives: []string{"all"}}); err == nil || !strings.Contains(err.Error(), `no collective "all"`) {
		t.Error(err)
	}
}

// of are the collectives of each algorithm.
var of = map[hostlib.Algorithm][]string{
	hostlib.AutoAlgorithm:     nil, // all
	hostlib.Linear:            {"allreduce", "barrier", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv", "alltoall", "alltoallv", "reduce-scatter", "reduce-scatterv"},
	hostlib.Binomial:          {"allreduce", "reduce", "broadcast", "barrier", "gather", "scatter"},
	hostlib.Chain:             {"broadcast", "scan", "exscan"},
	hostlib.Ring:              {"allreduce", "allgather", "allgatherv", "reduce-scatter", "reduce-scatterv"},
	hostlib.RecursiveDoubling: {"allreduce", "allgather", "scan", "exscan"},
	hostlib.Rabenseifner:      {"allreduce"},
	hostlib.Halving:           {"reduce-scatter", "reduce-scatterv"},
	hostlib.Bruck:             {"allgather", "alltoall"},
	hostlib.Pairwise:          {"alltoall", "alltoallv", "reduce-scatter", "reduce-scatterv"},
	hostlib.ScatterAllgather:  {"broadcast"},
	hostlib.RingGather:        {"reduce"},
	hostlib.Dissemination:     {"barrier"},
}

// TestAlgorithms: every algorithm passes, with members in any number.
func TestAlgorithms(t *testing.T) {
	for _, n := range sizes(1, 2, 3, 4, 5, 8) {
		for _, a := range hostlib.Algorithms() {
			t.Run(fmt.Sprintf("%d/%s", n, a), func(t *testing.T) {
				cfg := few()
				cfg.Collectives = of[a]
				r := try(t, form(t, n, hostlib.OnHosts(a)), cfg)
				if *full {
					cfg = long()
					cfg.Collectives = of[a]
					try(t, form(t, n, hostlib.OnHosts(a)), cfg)
				}
				isPower := n&(n-1) == 0
				if r.Cases == 0 || a != hostlib.AutoAlgorithm && n > 1 && r.Algorithms[a] == 0 && (isPower || a != hostlib.Halving) {
					t.Errorf("nothing ran by it: %v", r)
				}
				for other := range r.Algorithms {
					if isOwn := other == a || a == hostlib.AutoAlgorithm; n > 1 && isPower && !isOwn {
						t.Errorf("by %s ran %d", other, r.Algorithms[other])
					}
				}
			})
		}
	}
}

// TestSeventeen: so many members pass, on the tree of hosts and by hosts.
func TestSeventeen(t *testing.T) {
	cfg := few()
	if !*full {
		cfg.Types, cfg.Functions, cfg.Counts = []reduce.Type{reduce.Float32}, []reduce.Function{reduce.Sum}, []int{0, 1, 300}
	}
	for _, options := range [][]hostlib.GroupOption{nil, {hostlib.OnHosts()}} {
		try(t, form(t, 17, options...), cfg)
	}
}

// onTree are the collectives that a communicator's tree carries.
var onTree = []string{"allreduce", "reduce", "broadcast", "barrier", "gather", "scatter", "allgather", "allgatherv", "alltoall", "reduce-scatter", "reduce-scatterv"}

// TestOnTree: collectives pass over the tree, those of pieces with pieces that are shorter and longer than
// a packet.
func TestOnTree(t *testing.T) {
	for _, n := range sizes(2, 3, 5, 8) {
		cfg := few()
		cfg.Collectives = onTree
		r := try(t, form(t, n, hostlib.OnTree()), cfg)
		if n == 1 { // which needs no tree
			continue
		}
		if r.Transports[hostlib.HostTree] == 0 || r.Transports[hostlib.HostTree] < 5*r.Transports[hostlib.Hosts] {
			t.Errorf("%d members: %+v", n, r)
		}
	}
}
