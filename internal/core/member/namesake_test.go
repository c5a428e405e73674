package member

import (
	"testing"

	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// TestNamesake: a core that meets another of its name that answers leaves if it
// has just started, and reports otherwise, once. It does not report one that does not
// answer: that is an earlier life of its own.
func TestNamesake(t *testing.T) {
	for _, c := range []struct {
		what          string
		old, dead     bool
		notices, left bool
	}{
		{"a newcomer", false, false, true, true},
		{"who was there", true, false, true, false},
		{"a restart at another address", false, true, false, false},
	} {
		r := newRig(t, nil)
		r.join("b", "c", "d")
		if c.old {
			r.pass(newcomer)
		}
		other := r.dir.Add(gossip.ID("a@10.0.9.9:7946"))
		r.dir.Hold(other)
		r.mute[other] = c.dead
		r.take()
		for range 3 {
			r.inform(Message{Alives: []Entry{{other, ver(2, 1), nil}}})
		}
		reported := r.count("namesake a 2.1")
		if (reported == 1) != c.notices || r.stopped != c.left {
			t.Errorf("%s: reported %d times, left %v: %q", c.what, reported, r.stopped, r.log)
		}
		if r.pass(2 * r.cfg.Grace); c.dead && (r.Has(other) || r.stopped) {
			t.Errorf("%s: the earlier life is in the view", c.what)
		}
	}
}
