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
