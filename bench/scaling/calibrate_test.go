package scaling

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What follows a cost exactly has that cost; and no part of a fit is negative.
func TestFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Cost{rapid.Float64Range(100, 5000).Draw(t, "call"), rapid.Float64Range(1, 200).Draw(t, "packet"), rapid.Float64Range(0.01, 1).Draw(t, "byte")}
		noise := rapid.SampledFrom([]float64{0, 0.3}).Draw(t, "noise")
		var all []point
		for _, size := range []int{48, 512, 1472} {
			for _, n := range []int{1, 4, 16, 44} {
				took := want.Call + want.Packet*float64(n) + want.Byte*float64(n*size)
				all = append(all, point{n, n * size, took * (1 + noise*rapid.Float64Range(-1, 1).Draw(t, "off"))})
			}
		}
		got, err := fit(all)
		if err != nil || got.Call < 0 || got.Packet < 0 || got.Byte < 0 {
			t.Fatalf("%+v, %v", got, err)
		}
		near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Abs(b)+1e-6 }
		if noise == 0 && !(near(got.Call, want.Call) && near(got.Packet, want.Packet) && near(got.Byte, want.Byte)) {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
	if _, err := fit([]point{{1, 1, 1}}); !errors.Is(err, errFit) {
		t.Error(err)
	}
}

func TestMiddle(t *testing.T) {
	all := []Costs{{Look: 3, Send: Cost{Call: 1}}, {Look: 1, Send: Cost{Call: 9}}, {Look: 2, Send: Cost{Call: 5}}}
	if got := middle(all); got.Look != 2 || got.Send.Call != 5 {
		t.Errorf("%+v", got)
	}
}

// The cores do what is timed, without a clock's word about how long it took.
func TestCoresAreMeasured(t *testing.T) {
	for _, n := range []int{1, 44} {
		a, err := aggregateStep(n, 1432)
		if err != nil || a.packets != benchChildren*n || a.bytes != a.packets*1472 || a.took <= 0 {
			t.Errorf("%+v, %v", a, err)
		}
		s, err := sessionStep(n, 1432)
		if err != nil || s.packets != 2*n || s.bytes != 2*n*1472 || s.took <= 0 {
			t.Errorf("%+v, %v", s, err)
		}
	}
}

func TestReadTable(t *testing.T) {
	const text = `{"kind":"comparison","fabric":{"hosts":8,"rate":200000000},"bytes":8,"strangers":0.25,"contestants":[{"name":"tributary-hosts","median_us":9},{"name":"tributary","median_us":113.5}]}
{"kind":"comparison","collective":"barrier","fabric":{"hosts":8},"bytes":8,"contestants":[{"name":"tributary","median_us":1}]}
{"kind":"measurement","bytes":8}`
	got, err := ReadTable(strings.NewReader(text))
	if err != nil || len(got) != 1 || got[0] != (Timed{8, 200e6, 113500, 0.25}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "{", `{"kind":"comparison"}`} {
		if _, err := ReadTable(strings.NewReader(bad)); !errors.Is(err, ErrTable) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
