package gnmi

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// TestOrigins: a path with an origin selects what it selects without one, of that origin
// alone, and stands for few paths whatever its wildcards are.
func TestOrigins(t *testing.T) {
	names := rapid.SampledFrom([]string{openconfig.AnyDepth, openconfig.AnyDepth, openconfig.AnyElem, "interfaces", "interface", "state", "lldp", "tributary", "system", "mtu"})
	rapid.Check(t, func(t *rapid.T) {
		var p openconfig.Path
		for _, name := range rapid.SliceOfN(names, 0, 10).Draw(t, "names") {
			p = append(p, openconfig.Elem{Name: name})
		}
		for origin, first := range roots {
			all := within(origin, p)
			if len(all) > 2*len(first) {
				t.Fatalf("%v of %s is %d paths", p, origin, len(all))
			}
			q := requested{paths: all}
			for l := range openconfig.Schema() {
				if got, want := q.selects(l.Path), p.Covers(l.Path) && originOf(l.Path) == origin; got != want {
					t.Fatalf("%v of %s selects %v: %v", p, origin, l.Path, got)
				}
			}
		}
	})
}
