package hostlib

import (
	"slices"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// TestReducersOfEpochs follows a communicator from its hosts to a tree of switches
// and to another: an operation reports what reduced in the trees that it ran on.
func TestReducersOfEpochs(t *testing.T) {
	p4 := topology.Reducer{Pipeline: topology.P4}
	p4.Own[reduce.Int32] = topology.FunctionsOf(reduce.Sum)
	s := &status{epoch: 1, epochs: []uint32{1}}
	s.learn(&manager.Offer{Epoch: 2, Reducers: []manager.TreeReducer{
		{Reducer: p4, Switches: 2, Names: []string{"a", "b"}}, {Reducer: topology.SoftwareReducer(), Switches: 1, Names: []string{"c"}},
	}})
	s.learn(&manager.Offer{Epoch: 4, Reducers: []manager.TreeReducer{{Reducer: topology.SoftwareReducer(), Switches: 1, Names: []string{"c"}}}})
	outcome := func(first, last uint32, f reduce.Function, e reduce.Type, transport Transport) *Outcome {
		epochs, _, trees := s.during(first, last)
		return &Outcome{Transport: transport, Epochs: epochs, function: f, element: e, trees: trees}
	}
	check := func(o *Outcome, want ...Reducer) {
		t.Helper()
		same := func(a, b Reducer) bool {
			return a.By == b.By && a.Switches == b.Switches && slices.Equal(a.Names, b.Names)
		}
		if got := o.Reducers(); !slices.EqualFunc(got, want, same) {
			t.Errorf("reduced by %+v, want %+v", got, want)
		}
		by := [topology.Pipelines]bool{}
		for _, r := range want {
			by[r.By] = true
		}
		if o.servedBy() != by {
			t.Errorf("served by %v, want %v", o.servedBy(), by)
		}
	}
	check(outcome(1, 1, reduce.Sum, reduce.Int32, HostTree))
	s.enter(endpoint.Entered{Epoch: 2, Offload: true})
	ab, c := []string{"a", "b"}, []string{"c"}
	check(outcome(2, 2, reduce.Sum, reduce.Int32, Offload), Reducer{topology.P4, 2, ab}, Reducer{topology.Software, 1, c})
	check(outcome(2, 2, reduce.Sum, reduce.Float32, Offload), Reducer{topology.AgentCPU, 2, ab}, Reducer{topology.Software, 1, c})
	check(outcome(2, 2, reduce.NoFunction, reduce.NoType, Offload), Reducer{topology.P4, 2, ab}, Reducer{topology.Software, 1, c})
	reproducible := func(e reduce.Type) *Outcome {
		o := outcome(2, 2, reduce.Sum, e, Offload)
		o.Reproducible = true
		return o
	}
	agent, onP4, software := Reducer{topology.AgentCPU, 2, ab}, Reducer{topology.P4, 2, ab}, Reducer{topology.Software, 1, c}
	check(reproducible(reduce.Int32), agent, onP4, software) // the marks by the agents, which have no max
	check(reproducible(reduce.Int64), agent, software)
	s.trees[0][0].Own[reduce.Uint32] = topology.FunctionsOf(reduce.Max)
	check(reproducible(reduce.Int32), onP4, software)
	check(reproducible(reduce.Int64), onP4, agent, software)
	check(outcome(2, 2, reduce.Sum, reduce.Int64, Offload), agent, software)
	check(outcome(1, 2, reduce.Sum, reduce.Int32, Mixed), Reducer{topology.P4, 2, ab}, Reducer{topology.Software, 1, c})
	check(outcome(2, 2, reduce.Sum, reduce.Int32, HostTree))
	s.enter(endpoint.Entered{Epoch: 3})
	check(outcome(2, 3, reduce.Sum, reduce.Int32, Mixed), Reducer{topology.P4, 2, ab}, Reducer{topology.Software, 1, c})
	check(outcome(3, 3, reduce.Sum, reduce.Int32, HostTree))
	s.learn(&manager.Offer{Epoch: 2, Reducers: []manager.TreeReducer{{Switches: 9}}}) // again, of what is past
	s.enter(endpoint.Entered{Epoch: 4, Offload: true})
	check(outcome(4, 4, reduce.Sum, reduce.Float32, Offload), Reducer{topology.Software, 1, c})
	stripes := &Outcome{Transport: Offload, Stripes: []Outcome{*outcome(2, 2, reduce.Sum, reduce.Float32, Offload), *outcome(4, 4, reduce.Sum, reduce.Float32, Offload)}}
	check(stripes, Reducer{topology.AgentCPU, 2, ab}, Reducer{topology.Software, 1, c})
	if len(s.offered) > 0 {
		t.Errorf("%v are kept for epochs that are past", s.offered)
	}
	o := outcome(4, 4, reduce.Sum, reduce.Float32, Offload)
	if n := testing.AllocsPerRun(100, func() { _ = o.servedBy() }); n > 0 {
		t.Errorf("%v allocations to count an operation", n)
	}
}
