package transport

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestAdapt: whoever waited longer than the longest look looks for half as long
// next time, down to a part of it, and after a short wait for the longest again.
func TestAdapt(t *testing.T) {
	const poll = time.Millisecond
	u := &UDP{since: time.Hour, poll: poll, look: poll}
	long := func() { u.adapt(time.Hour + 2*poll) }
	short := func() { u.adapt(time.Hour + poll/2) }
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

// TestSetBulk: whoever need not have the next datagram at once looks for the
// shortest time, if it adapts.
func TestSetBulk(t *testing.T) {
	const poll = time.Millisecond
	u := &UDP{poll: poll, look: poll}
	for _, c := range []struct {
		bulk, fixed bool
		want        time.Duration
	}{{false, false, poll}, {true, false, poll / 16}, {true, true, poll}, {false, true, poll}} {
		u.fixed = c.fixed
		u.SetBulk(c.bulk)
		if got := u.patience(); got != c.want {
			t.Errorf("%+v: it looks for %v", c, got)
		}
	}
}

// idle is an engine to which nothing comes. A look takes a while.
type idle struct {
	engine
	look  time.Duration
	looks int
}

func (e *idle) take([]Packet, bool) (int, error) {
	e.looks++
	<-time.After(e.look) // of the bubble's clock
	return 0, nil
}

// TestStuck: a read looks several times before it reads the clock, unless looking
// takes so long that it would be late.
func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &idle{}
		u := &UDP{engine: e, opened: time.Now(), poll: time.Second, look: time.Second, attentive: true}
		for i, round := range []struct {
			look time.Duration
			want int
		}{{stall / 10, tries}, {stall, tries}, {2 * stall, 1}, {stall / 10, 1}, {stall / 10, tries}} {
			e.look, e.looks = round.look, 0
			begun := time.Since(u.opened)
			now := begun
			if n, err := u.wait(nil, &now, time.Hour, time.Time{}); n != 0 || err != nil {
				t.Fatal(n, err)
			}
			if took := now - begun; e.looks != round.want || took != time.Duration(e.looks)*round.look {
				t.Errorf("round %d, looks of %v: %d in %v, want %d", i, round.look, e.looks, took, round.want)
			}
		}
	})
}
