package hostlib

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// costsOf returns costs by which a way of each kind takes so long.
func costsOf(messages, hostTree, switches time.Duration) *pathsel.Costs {
	c := new(pathsel.Costs)
	for f := range c.Rates {
		c.Rates[f][pathsel.ByMessages][pathsel.Step] = messages
		c.Rates[f][pathsel.ByHostTree][pathsel.Start], c.Rates[f][pathsel.BySwitches][pathsel.Start] = hostTree, switches
	}
	return c
}

// TestChoice: members without a manager choose by the lowest rank's costs, whatever their own are,
// and Explain says what they choose, and why.
func TestChoice(t *testing.T) {
	ctx := within(t)
	names := []string{"a", "b", "c", "d"}
	n := len(names)
	for _, test := range []struct {
		name    string
		costs   *pathsel.Costs
		options []GroupOption
		want    string // of an allreduce
		reason  string
	}{
		{"by the tree", costsOf(time.Millisecond, time.Microsecond, time.Nanosecond), nil, "host-tree", "the fastest way by the cost model; this host has no offload manager"},
		{"by messages", costsOf(time.Microsecond, time.Millisecond, time.Nanosecond), nil, "recursive-doubling", "the fastest way by the cost model; this host has no offload manager"},
		{"on the tree", costsOf(time.Microsecond, time.Millisecond, time.Nanosecond), []GroupOption{OnTree()}, "host-tree", "OnTree or OnTreeOfHosts has it so"},
		{"on hosts", costsOf(time.Millisecond, time.Microsecond, time.Nanosecond), []GroupOption{OnHosts(Ring)}, "ring", "OnHosts has it so, with [ring]"},
		{"none on hosts", costsOf(time.Microsecond, time.Millisecond, time.Nanosecond), []GroupOption{OnHosts(Bruck)}, "host-tree", "of which none does this; this host"},
		{"the best on hosts", costsOf(time.Millisecond, time.Microsecond, time.Nanosecond), []GroupOption{OnHosts()}, "recursive-doubling", "OnHosts leaves the tree out"},
	} {
		t.Run(test.name, func(t *testing.T) {
			hosts, members := joinAs(t, names, func(c *Config) {
				if c.Costs = test.costs; c.Name != names[0] {
					c.Costs = costsOf(time.Second, time.Second, time.Second)
				}
			})
			comms := form(t, "choice", hosts, members, test.options...)
			each(n, func(i int) {
				c := comms[i]
				v := make([]float32, 100)
				outcome, err := Allreduce(ctx, c, reduce.Sum, v, v)
				if err != nil {
					t.Error(err)
					return
				}
				e, err := c.Explain(Question{Collective: "allreduce", Elements: 100, Type: reduce.Float32, Operator: reduce.Sum})
				if err != nil || e.Chosen.String() != test.want || !strings.Contains(e.Reason, test.reason) || e.Waiting != nil {
					t.Errorf("rank %d: %v: %v", i, err, e)
				}
				says := "this host has no offload manager"
				if outcome.Transport == Hosts {
					says = "by an algorithm of hosts: " + test.want
				}
				if isChosen := !slices.Contains([]string{"on the tree", "on hosts", "none on hosts"}, test.name); !strings.Contains(outcome.Reason, says) ||
					isChosen != strings.Contains(outcome.Reason, "the fastest way by the cost model") {
					t.Errorf("rank %d: it ran so because %q", i, outcome.Reason)
				}
				if way := (Way{Transport: outcome.Transport, Algorithm: outcome.Algorithm}); way.String() != test.want {
					t.Errorf("rank %d: it ran by %s: %s", i, way, outcome.Reason)
				}
				if !slices.IsSortedFunc(e.Ways, func(a, b Way) int { return int(a.Predicted - b.Predicted) }) || len(e.Ways) != len(schedule.AllOf(schedule.Allreduce))+2 {
					t.Errorf("rank %d: %v", i, e.Ways)
				}
			})
			c := comms[0]
			custom := Custom("f", false, func(to, a, b []float32) { copy(to, a) })
			for _, q := range []struct {
				Question
				want string
			}{
				{Question{Collective: "alltoall", Elements: 5, Type: reduce.Int32}, "the fastest way by the cost model"},
				{Question{Collective: "allreduce", Elements: 5, Type: reduce.Float32, Operator: custom}, "an operator of the caller's own"},
				{Question{Collective: "allgatherv", Elements: 5, Type: reduce.Int32}, ""},
				{Question{Collective: "gather", Elements: 5, Width: 1}, ""},
				{Question{Collective: "barrier"}, ""},
			} {
				if e, err := c.Explain(q.Question); err != nil || len(test.options) == 0 && !strings.Contains(e.String(), q.want) {
					t.Errorf("%s: %v, %v", q.Collective, e, err)
				}
			}
			for want, q := range map[string]Question{
				`no collective "", but ["allreduce" "reduce"`:  {},
				"allreduce: there is no operator":              {Collective: "allreduce", Elements: 1, Type: reduce.Int32},
				"gather does not reduce":                       {Collective: "gather", Type: reduce.Int32, Operator: reduce.Sum},
				"elements of type none":                        {Collective: "gather", Elements: 1},
				"int32, and of 2 bytes":                        {Collective: "gather", Elements: 1, Type: reduce.Int32, Width: 2},
				"none, and of 3 bytes":                         {Collective: "scatter", Elements: 1, Width: 3},
				"broadcast of elements of type none, and of 1": {Collective: "broadcast", Elements: 1, Width: 1},
				"a negative number of elements":                {Collective: "gather", Elements: -1, Type: reduce.Int32},
				"root 4 in a group of 4":                       {Collective: "gather", Type: reduce.Int32, Root: 4},
			} {
				if _, err := c.Explain(q); !errors.Is(err, ErrArgument) || !strings.Contains(err.Error(), want) {
					t.Errorf("%+v: %v", q, err)
				}
			}
		})
	}
}

// TestExplainOfProcesses: where processes of a host share memory, no algorithm of hosts is a choice,
// but for operators of the caller's own.
func TestExplainOfProcesses(t *testing.T) {
	hosts, members := joinProcesses(t, []int{2, 1}, func(c *Config) { c.Costs = costsOf(time.Microsecond, time.Second, 0) })
	comms := form(t, "choice", hosts, members)
	for rank, c := range comms {
		q := Question{Collective: "allreduce", Elements: 5, Type: reduce.Float32, Operator: reduce.Sum}
		e, err := c.Explain(q)
		if err != nil || e.Chosen.Transport != HostTree || !strings.Contains(e.Reason, "shared memory") {
			t.Errorf("rank %d: %v, %v", rank, e, err)
		}
		for _, w := range e.Ways {
			if w.Transport == Hosts && w.Excluded == "" {
				t.Errorf("rank %d: %v is not excluded", rank, w)
			}
		}
		q.Operator = Custom("f", true, func(to, a, b []float32) {})
		if e, err := c.Explain(q); err != nil || e.Chosen.Transport != Hosts || e.Chosen.Excluded != "" {
			t.Errorf("rank %d: %v, %v", rank, e, err)
		}
	}
	leave(t, comms)
}

// TestPiecesByCosts: operations of pieces go over the tree where that is the fastest way, and Explain has
// a time for it.
func TestPiecesByCosts(t *testing.T) {
	ctx := within(t)
	unknown := costsOf(time.Millisecond, 0, 0)
	for _, test := range []struct {
		name  string
		costs *pathsel.Costs
		want  Transport
		why   string // the tree of hosts is excluded
	}{
		{"the tree", costsOf(time.Millisecond, time.Microsecond, time.Microsecond), HostTree, ""},
		{"hosts", costsOf(time.Microsecond, time.Millisecond, time.Microsecond), Hosts, ""},
		{"nobody knows of the tree", unknown, Hosts, "what it takes is not measured"},
	} {
		t.Run(test.name, func(t *testing.T) {
			hosts, members := joinAs(t, []string{"a", "b", "c"}, func(c *Config) { c.Costs = test.costs })
			comms := form(t, "pieces", hosts, members)
			each(len(comms), func(i int) {
				c, root := comms[i], 1
				v, all := make([]int32, 100), make([]int32, 300)
				for _, x := range []struct {
					Question
					call func() (Outcome, error)
				}{
					{Question{Collective: "allgather"}, func() (Outcome, error) { return Allgather(ctx, c, v, all) }},
					{Question{Collective: "gather", Root: root}, func() (Outcome, error) { return Gather(ctx, c, root, v, all) }},
					{Question{Collective: "scatter", Root: root}, func() (Outcome, error) { return Scatter(ctx, c, root, all, v) }},
					{Question{Collective: "alltoall"}, func() (Outcome, error) { return Alltoall(ctx, c, all, slices.Clone(all)) }},
					{Question{Collective: "reduce-scatter", Operator: reduce.Sum}, func() (Outcome, error) { return ReduceScatter(ctx, c, reduce.Sum, all, v) }},
				} {
					x.Elements, x.Type = len(v), reduce.Int32
					o, err := x.call()
					if err != nil || o.Transport != test.want || !strings.Contains(o.Reason, "the fastest way by the cost model") {
						t.Errorf("rank %d: %s by %v: %s, %v", i, x.Collective, o.Transport, o.Reason, err)
					}
					e, err := c.Explain(x.Question)
					if err != nil || e.Chosen.Transport != test.want || e.Chosen.Algorithm != o.Algorithm || e.Chosen.Excluded != "" {
						t.Errorf("rank %d: %s: %v: %v", i, x.Collective, err, e)
					}
					at := slices.IndexFunc(e.Ways, func(w Way) bool { return w.Transport == HostTree })
					if at < 0 || e.Ways[at].Excluded != test.why || (e.Ways[at].Predicted == 0) != (test.why != "") {
						t.Errorf("rank %d: %s: %v", i, x.Collective, e)
					}
				}
			})
		})
	}
}

// TestNewCosts: members go over to other costs of the lowest rank at one operation, while they run.
func TestNewCosts(t *testing.T) {
	ctx := within(t)
	const n, operations = 4, 400
	hosts, members := joinAs(t, []string{"a", "b", "c", "d"}, func(c *Config) { c.Costs = costsOf(time.Second, 1, 1) })
	comms := form(t, "new costs", hosts, members)
	ran := make([][]Transport, n)
	each(n, func(i int) {
		v := make([]int32, 10)
		for k := range operations {
			if i == 0 && k%50 == 10 {
				hosts[0].learn([]*pathsel.Costs{costsOf(0, time.Second, 1), costsOf(time.Second, 1, 1)}[k/50%2])
			}
			outcome, err := Allreduce(ctx, comms[i], reduce.Sum, v, v)
			if err != nil {
				t.Error(err)
				return
			}
			ran[i] = append(ran[i], outcome.Transport)
		}
	})
	for i := range ran {
		if !slices.Equal(ran[i], ran[0]) {
			t.Errorf("rank %d ran by %v, rank 0 by %v", i, ran[i], ran[0])
		}
	}
	if !slices.Contains(ran[0], Hosts) || !slices.Contains(ran[0], HostTree) {
		t.Errorf("all operations ran by %v", ran[0][0])
	}
}

// TestPolicy: what members choose by is read as it was written, and nothing else is.
func TestPolicy(t *testing.T) {
	none, some, others := pathsel.Links{}, pathsel.Links{Rate: 5e9, Uplink: 1e9, Leaf: 40}, pathsel.Links{Rate: 7}
	for _, x := range []struct {
		switches, measured bool
		given, shared      int
		processors         int
		own, links, want   pathsel.Links // of the costs, of the fabric, and the policy's
	}{
		{false, false, 0, 0, 0, none, none, none}, {true, false, 0, 2, 2, none, some, some}, {true, true, 3, 2, 3, some, none, some},
		{false, false, 0, 2, 2, some, others, some}, {false, true, 1, 0, 1, none, others, others},
	} {
		costs := &pathsel.Costs{Rates: pathsel.DefaultCosts().Rates, Processors: x.given, Links: x.own}
		if x.measured {
			costs.Rates[pathsel.OfScan][pathsel.ByMessages][pathsel.Start]++
		}
		want := newPolicy(costs, x.switches, x.shared, x.links)
		got, err := readPolicy(slices.Clone(want.coded))
		if err != nil || *got.costs != *want.costs || got.switches != x.switches || got.measured != x.measured || got.costs.Processors != x.processors || got.costs.Links != x.want || costs.Processors != x.given || costs.Links != x.own {
			t.Errorf("%+v: %+v, %v", x, got, err)
		}
		for n := range want.coded {
			if _, err := readPolicy(want.coded[:n]); err == nil {
				t.Fatalf("%d of %d bytes are read", n, len(want.coded))
			}
		}
		if _, err := readPolicy(append(slices.Clone(want.coded), 0)); err == nil {
			t.Error("more bytes are read")
		}
	}
}

// TestCostsOfManager: members choose by the costs of their lowest rank's manager, switches included.
func TestCostsOfManager(t *testing.T) {
	for want, costs := range map[Transport]*pathsel.Costs{
		Hosts: costsOf(time.Microsecond, time.Second, time.Second), Offload: costsOf(time.Second, time.Second, time.Microsecond),
	} {
		t.Run(want.String(), func(t *testing.T) {
			f := newFabric(t, 1, nil)
			f.manager.Kill()
			f.cfg.Model = pathsel.DefaultModel()
			f.cfg.Model.Costs = costs
			f.startManager()
			hosts, members := f.join(func(c *Config) { c.Costs = costsOf(time.Second, time.Microsecond, time.Second) })
			comms := form(t, "job", hosts, members)
			offloaded(t, comms, 0)
			until(within(t), t, "the manager's costs are those of the group", func() bool {
				e, err := comms[0].Explain(Question{Collective: "allreduce", Elements: 1, Type: reduce.Int64, Operator: reduce.Sum})
				return sum(t, comms, 1)[0].Transport == want && err == nil && e.Chosen.Transport == want && e.Chosen == e.Ways[0] && e.Chosen.Predicted <= 3*time.Microsecond
			})
		})
	}
}

// TestLinksOfFabric: members predict times by the rate of the links that the manager's topology has, whether it
// has costs or not; without a manager by that of the lowest rank's costs.
func TestLinksOfFabric(t *testing.T) {
	const elements = 1 << 18 // of four bytes: 42 ms at 200 Mbit/s
	slow := func(rate int64) *topology.Graph {
		e := topology.DefaultEquipment()
		e.Link.Bandwidth = rate
		g, err := e.LeafSpine(2, 2, 1)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	predicts := func(t *testing.T, c *Communicator, rate int64) bool {
		e, err := c.Explain(Question{Collective: "allreduce", Elements: elements, Type: reduce.Float32, Operator: reduce.Sum})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range e.Ways {
			if w.Algorithm == Ring && e.Links.Rate == 200e6 && w.Predicted < 63*time.Millisecond {
				t.Errorf("a ring takes %v", w.Predicted)
			}
		}
		return e.Links.Rate == rate && strings.Contains(e.String(), "with links of ") == (rate > 0)
	}
	for name, model := range map[string]*pathsel.Costs{"built-in costs": nil, "costs of the manager": pathsel.DefaultCosts()} {
		t.Run(name, func(t *testing.T) {
			f := newFabric(t, 1, nil)
			f.manager.Kill()
			f.cfg.Topology, f.cfg.Model = slow(200e6), pathsel.DefaultModel()
			f.cfg.Model.Costs = model
			f.startManager()
			hosts, members := f.join()
			comms := form(t, "job", hosts, members, OnHosts())
			until(within(t), t, "the members know the links' rate", func() bool {
				sum(t, comms, 1)
				return !slices.ContainsFunc(comms, func(c *Communicator) bool { return !predicts(t, c, 200e6) })
			})
		})
	}
	hosts, members := joinAs(t, []string{"a", "b", "c"}, func(c *Config) {
		c.Costs = &pathsel.Costs{Rates: pathsel.DefaultCosts().Rates, Links: pathsel.Links{Rate: 1e9}}
	})
	for rank, c := range form(t, "job", hosts, members) {
		if !predicts(t, c, 1e9) {
			t.Errorf("rank %d does not know the links' rate", rank)
		}
	}
}

// TestSharedProcessors: members of one address share this machine's processors.
func TestSharedProcessors(t *testing.T) {
	for _, c := range []struct {
		addresses []string
		shared    int
	}{
		{[]string{"127.0.0.1:1", "127.0.0.1:2"}, runtime.NumCPU()},
		{[]string{"10.0.0.1:1", "10.0.0.2:1"}, 0},
		{[]string{"127.0.0.1:1", ""}, 0},
		{[]string{"", ""}, 0},
	} {
		comm := &Communicator{}
		for _, a := range c.addresses {
			comm.members = append(comm.members, Member{Addr: a})
		}
		if got := comm.sharedProcessors(); got != c.shared {
			t.Errorf("%q: %d, not %d", c.addresses, got, c.shared)
		}
	}
}

// TestExplainReproducible: a Reproducible sum is predicted, and chosen, with the agreement before it, by which it may
// run another way than a sum of the same words.
func TestExplainReproducible(t *testing.T) {
	// The tree costs the same for each operation, and hosts by length: of 1 MiB more than that, of the marks next to nothing.
	costs := costsOf(0, 50*time.Microsecond, time.Second)
	for f := range costs.Rates {
		costs.Rates[f][pathsel.ByMessages][pathsel.Link] = 60 * time.Microsecond
		costs.Rates[f][pathsel.ByMessages][pathsel.Start] = time.Microsecond
	}
	const elements = 1 << 18
	hosts, members := joinAs(t, []string{"a", "b"}, func(c *Config) { c.Costs = costs })
	plain, comms := form(t, "plain", hosts, members), form(t, "job", hosts, members, Reproducible())
	ask := func(c *Communicator, q Question) Explanation {
		t.Helper()
		e, err := c.Explain(q)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	for of, marks := range map[string]int{"allreduce": elements / 16, "reduce": elements / 16, "scan": elements / 16, "reduce-scatter": elements / 8} {
		words := ask(plain[0], Question{Collective: of, Elements: elements, Type: reduce.Int32, Operator: reduce.Sum})
		sums := ask(comms[0], Question{Collective: of, Elements: elements, Type: reduce.Float32, Operator: reduce.Sum})
		agreement := ask(plain[0], Question{Collective: "allreduce", Elements: marks, Type: reduce.Uint32, Operator: reduce.Max})
		for _, w := range sums.Ways {
			i := slices.IndexFunc(words.Ways, func(o Way) bool { return o.String() == w.String() })
			j := slices.IndexFunc(agreement.Ways, func(o Way) bool { return o.Transport == w.Transport }) // the fastest
			if want := words.Ways[i].Predicted + agreement.Ways[j].Predicted; w.Predicted != want && (w.Transport == Hosts || w.Excluded == "") {
				t.Errorf("%s by %v: %v, want %v", of, w, w.Predicted, want)
			}
		}
		if !slices.IsSortedFunc(sums.Ways, func(a, b Way) int { return int(a.Predicted - b.Predicted) }) {
			t.Errorf("%v", sums)
		}
	}
	words := ask(plain[0], Question{Collective: "allreduce", Elements: elements, Type: reduce.Int32, Operator: reduce.Sum})
	sums := ask(comms[0], Question{Collective: "allreduce", Elements: elements, Type: reduce.Float32, Operator: reduce.Sum})
	if words.Chosen.Transport != HostTree || sums.Chosen.Transport != Hosts || sums.Ways[0] != sums.Chosen {
		t.Errorf("%v\n%v", words, sums)
	}
	each(2, func(i int) {
		v := make([]float32, elements)
		o, err := Allreduce(within(t), comms[i], reduce.Sum, v, v)
		if err != nil || o.Transport != Hosts || o.Algorithm != sums.Chosen.Algorithm {
			t.Errorf("%+v %v, and not as in %v", o, err, sums)
		}
	})
}
