package discovery

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/topology"
)

func TestNumbers(t *testing.T) {
	for name, c := range map[string]struct {
		ports []numbered
		want  []topology.Port
	}{
		"given":                {[]numbered{{name: "a", given: 7, digits: 3}, {name: "b3", digits: 3}}, []topology.Port{7, 3}},
		"given to two":         {[]numbered{{name: "a", given: 7, index: 5}, {name: "b", given: 7, index: 4}}, []topology.Port{5, 7}},
		"given beats had":      {[]numbered{{name: "a", was: 7}, {name: "b", given: 7}}, []topology.Port{1, 7}},
		"in the file":          {[]numbered{{name: "a", filed: 2, digits: 9}, {name: "b", was: 2}}, []topology.Port{2, 1}},
		"had beats digits":     {[]numbered{{name: "a", was: 9}, {name: "eth9", digits: 9}}, []topology.Port{9, 1}},
		"digits of two":        {[]numbered{{name: "a9", digits: 9, index: 30}, {name: "b9", digits: 9, index: 4}}, []topology.Port{30, 9}},
		"index unknown":        {[]numbered{{name: "a9", digits: 9}, {name: "b9", digits: 9, index: 4}}, []topology.Port{1, 9}},
		"gone":                 {[]numbered{{name: "eth3", was: 3, isGone: true}, {name: "swp3", digits: 3}}, []topology.Port{1, 3}},
		"gone, and none comes": {[]numbered{{name: "eth3", was: 3, isGone: true}, {name: "swp4", digits: 4}}, []topology.Port{3, 4}},
		"too large":            {[]numbered{{name: "a", given: topology.MaxPort + 2, digits: 1 << 31}}, []topology.Port{1}},
	} {
		is := numbers(slices.Clone(c.ports))
		for i, p := range c.ports {
			if is[p.name] != c.want[i] {
				t.Errorf("%s: %s has %d, want %d", name, p.name, is[p.name], c.want[i])
			}
		}
	}
}

// TestNumbersStay: whatever comes later, and has no number of its own, every port keeps its
// number; no two have one; and the order of the ports does not matter.
func TestNumbersStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.Uint32Range(0, 6)
		var ports []numbered
		for i := range rapid.IntRange(1, 8).Draw(t, "ports") {
			ports = append(ports, numbered{
				name: fmt.Sprintf("p%d", i), given: small.Draw(t, "given"), digits: small.Draw(t, "digits"), index: small.Draw(t, "index"),
			})
		}
		is := numbers(slices.Clone(ports))
		if other := numbers(rapid.Permutation(ports).Draw(t, "order")); !maps.Equal(is, other) {
			t.Fatalf("%v, and in another order %v", is, other)
		}
		seen := map[topology.Port]bool{}
		for i := range ports {
			x := is[ports[i].name]
			if x == 0 || seen[x] {
				t.Fatalf("%s has %d: %v", ports[i].name, x, is)
			}
			seen[x], ports[i].was = true, x
		}
		for i := range rapid.IntRange(0, 4).Draw(t, "later") {
			ports = append(ports, numbered{name: fmt.Sprintf("a%d", i), digits: small.Draw(t, "digits"), index: small.Draw(t, "index")})
		}
		later := numbers(ports)
		for name, x := range is {
			if later[name] != x {
				t.Fatalf("%s had %d, and has %d", name, x, later[name])
			}
		}
	})
}
