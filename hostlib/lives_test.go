package hostlib

import (
	"testing"

	"github.com/tributary-fabric/tributary/membership"
)

// TestLives: what ends members is the end of a node's last life, and not a late
// word of an earlier one, at whatever address.
func TestLives(t *testing.T) {
	type step struct {
		kind        membership.Kind
		incarnation uint64
		ends        bool
	}
	const up, down = membership.Joined, membership.Left
	for name, steps := range map[string][]step{
		"it dies":                        {{up, 1, false}, {down, 1, true}},
		"it starts again":                {{up, 1, false}, {down, 1, true}, {up, 2, false}, {down, 2, true}},
		"it is back before it is dead":   {{up, 1, false}, {up, 2, false}, {down, 1, false}, {down, 2, true}},
		"it is back twice":               {{up, 1, false}, {up, 3, false}, {up, 2, false}, {down, 2, false}, {down, 1, false}, {down, 3, true}},
		"its beginning was not heard of": {{down, 1, true}, {up, 2, false}, {down, 2, true}},
		"it dies once more, as is heard": {{up, 2, false}, {down, 2, true}, {down, 2, true}},
	} {
		t.Run(name, func(t *testing.T) {
			l := lives{}
			for i, s := range steps {
				var x membership.Notice
				x.Kind, x.Member.Name, x.Member.Version.Incarnation = s.kind, "h", s.incarnation
				if got := l.end(x); got != s.ends {
					t.Errorf("step %d, %+v: got %v", i, s, got)
				}
			}
		})
	}
}
