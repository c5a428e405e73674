package membership

import (
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/hierarchy"
	"github.com/tributary-fabric/tributary/internal/core/member"
)

// TestSettings: what is not given is the cores' default, and what is given gets
// to them.
func TestSettings(t *testing.T) {
	none := Config{}.withDefaults()
	if got, want := none.Timing.settings(), member.DefaultSettings(); got != want {
		t.Errorf("timing %+v, want %+v", got, want)
	}
	if got, want := none.Hierarchy.settings(), hierarchy.DefaultSettings(); got != want {
		t.Errorf("hierarchy %+v, want %+v", got, want)
	}
	s := Timing{Confirm: 7, Health: -1, Stealth: 3}.withDefaults().settings()
	if s.Confirm != 7 || s.Health != 0 || s.Stealth != 3 {
		t.Errorf("%+v", s)
	}
	given := Hierarchy{Delegates: 3, Supervisors: 4, Settle: 5, Patience: 6, Retry: 7, Beat: 8, Silence: 9, Linger: 10}
	h := given.withDefaults().settings()
	if got := (Hierarchy{h.Delegates, h.Supervisors, h.Settle, h.Patience, h.Retry, h.Beat, h.Silence, h.Linger}); got != given {
		t.Errorf("%+v, want %+v", got, given)
	}
}

// TestSettingsReachTheCore: three nodes with other settings than the defaults
// make up a zone, with three delegates.
func TestSettingsReachTheCore(t *testing.T) {
	settings := Hierarchy{Delegates: 3, Settle: 100 * time.Millisecond}
	m := join(t, Config{Name: "m", Management: true, Hierarchy: settings})
	nodes := zoneOf(t, 3, func(_ int, c *Config) {
		c.Hierarchy, c.Supervisors = settings, []string{m.Addr().String()}
		c.Timing = Timing{Stealth: 1, Tau: 20 * time.Millisecond}
	})
	agree(t, nodes...)
	await(t, func() bool {
		all, err := m.Census(within(t))
		return err == nil && len(all) == 1 && all[0].Delegates == 3
	})
}
