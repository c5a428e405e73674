package topology

import (
	"testing"

	"github.com/tributary-fabric/tributary/reduce"
)

func TestSets(t *testing.T) {
	f := FunctionsOf(reduce.Sum, reduce.MaxLoc)
	if !f.Has(reduce.Sum) || f.Has(reduce.Min) || f.Has(255) || !f.Covers(FunctionsOf(reduce.MaxLoc)) || f.Covers(FunctionsOf(reduce.Sum, reduce.Min)) {
		t.Errorf("functions %v", f)
	}
	y := TypesOf(reduce.Int32, reduce.BFloat16)
	if !y.Has(reduce.Int32) || y.Has(reduce.Int64) || y.Has(255) || !y.Covers(TypesOf(reduce.BFloat16)) || y.Covers(AllTypes()) {
		t.Errorf("types %v", y)
	}
	if len(AllFunctions().List()) != 12 || len(AllTypes().List()) != 9 || AllFunctions().Has(reduce.NoFunction) || AllTypes().Has(reduce.NoType) {
		t.Errorf("all: %v, %v", AllFunctions().List(), AllTypes().List())
	}
	for _, test := range []struct{ got, want string }{
		{f.String(), "sum,maxloc"}, {y.String(), "int32,bfloat16"}, {Functions(0).String(), "none"}, {Types(0).String(), "none"},
		{AllFunctions().String(), "all"}, {AllTypes().String(), "all"},
		{Host.String(), "host"}, {Switch.String(), "switch"}, {Kind(7).String(), "kind(7)"},
	} {
		if test.got != test.want {
			t.Errorf("%q, want %q", test.got, test.want)
		}
	}
}

func TestReducer(t *testing.T) {
	own := Pairs{}
	own[reduce.Int32], own[reduce.Uint32] = FunctionsOf(reduce.Sum, reduce.Min), FunctionsOf(reduce.Sum, reduce.Min)
	own[reduce.Float32] = FunctionsOf(reduce.Min)
	p4, soft, none := Reducer{P4, own}, SoftwareReducer(), Reducer{}
	for _, test := range []struct {
		r    Reducer
		f    reduce.Function
		t    reduce.Type
		want Pipeline
	}{
		{p4, reduce.Sum, reduce.Int32, P4}, {p4, reduce.Sum, reduce.Float32, AgentCPU}, {p4, reduce.Min, reduce.Float32, P4},
		{p4, reduce.NoFunction, reduce.Float64, P4}, {p4, reduce.Sum, 200, AgentCPU}, {Reducer{Kernel, own}, reduce.MinLoc, reduce.Int32, AgentCPU},
		{soft, reduce.MinLoc, reduce.Float64, Software}, {none, reduce.Sum, reduce.Int32, UnknownPipeline},
	} {
		if got := test.r.Serves(test.f, test.t); got != test.want {
			t.Errorf("%v: %v of %v by %v, want %v", test.r, test.f, test.t, got, test.want)
		}
	}
	for got, want := range map[string]string{
		p4.String(): "p4 (int32,uint32: sum,min; float32: min), the rest by its agent's CPU", soft.String(): "software", none.String(): "unknown",
		soft.Own.String(): "all", none.Own.String(): "none", Pipeline(9).String(): "pipeline(9)", AgentCPU.String(): "agent-cpu",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
