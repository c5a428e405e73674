package transport

import (
	"testing"
	"time"
)

// TestAdapt: whoever waited longer than the longest look looks for half as long
// next time, down to a part of it, and after a short wait for the longest again.
func TestAdapt(t *testing.T) {
	const poll = time.Millisecond
	u := &UDP{opened: time.Now().Add(-time.Hour), poll: poll, look: poll}
	long := func() {
		u.since = 0 // an hour ago
		u.adapt()
	}
	short := func() {
		u.since = time.Since(u.opened) + time.Hour // a wait of no time
		u.adapt()
	}
	for _, want := range []time.Duration{poll / 2, poll / 4, poll / 8, poll / 16, poll / 16} {
		if long(); u.look != want {
			t.Errorf("after a long wait it looks for %v, want %v", u.look, want)
		}
	}
	if short(); u.look != poll {
		t.Errorf("after a short wait it looks for %v, want %v", u.look, poll)
	}
	u.fixed = true
	if long(); u.look != poll {
		t.Errorf("one that does not adapt looks for %v", u.look)
	}
}

// TestCalm: whoever need not have the next datagram at once looks for the
// shortest time, if it adapts.
func TestCalm(t *testing.T) {
	const poll = time.Millisecond
	u := &UDP{poll: poll, look: poll}
	for _, c := range []struct {
		calm, fixed bool
		want        time.Duration
	}{{false, false, poll}, {true, false, poll / 16}, {true, true, poll}, {false, true, poll}} {
		u.fixed = c.fixed
		u.Calm(c.calm)
		if got := u.patience(); got != c.want {
			t.Errorf("%+v: it looks for %v", c, got)
		}
	}
}
