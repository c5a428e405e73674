package member

import (
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// The tests of this file and of those beside it are named after what
// shared/requirements/membership.md asks for, whose points they cite.

func suspicion(r *rig, reporter, suspect string, v Version) Suspicion {
	return Suspicion{idOf(reporter).Key(), r.index(suspect), v, nil}
}

// TestVersionIsItsOwners (1): the minor begins at 1, and nobody else's word
// changes it.
func TestVersionIsItsOwners(t *testing.T) {
	r := newRig(t, nil)
	if v := r.Self().Version; v != (ver(5, 1)) {
		t.Fatalf("it begins at %v, want 5.1", v)
	}
	r.inform(Message{Alives: []Entry{r.entry("a", 4, 9), r.entry("a", 5, 1)}})
	if v := r.Self().Version; v != (ver(5, 1)) {
		t.Errorf("old news make it %v", v)
	}
	r.inform(Message{Alives: []Entry{r.entry("a", 5, 7)}})
	if v := r.Self().Version; v != (ver(5, 8)) {
		t.Errorf("a version above its own makes it %v, want 5.8: above what others hold", v)
	}
	r.take()
	r.inform(Message{Alives: []Entry{r.entry("a", 6, 1)}})
	r.want("a later start of the same node", "superseded by 6.1", "stopped")
	r = newRig(t, nil)
	r.step(Input{Kind: Datagram, Message: &Message{Type: gossip.Probe, Target: idOf("z").Key(), From: r.entry("b", 1, 1), About: Entry{Nobody, ver(6, 1), nil}}})
	r.want("a probe that means another, who was at this endpoint")
	r.step(Input{Kind: Datagram, Message: &Message{Type: gossip.Probe, Target: r.key, From: r.entry("b", 1, 1), About: Entry{Nobody, ver(6, 1), nil}}})
	r.want("a probe by who holds a later start dead", "superseded by 6.1", "stopped")
	r = newRig(t, nil)
	r.inform(Message{Suspicions: []Suspicion{suspicion(r, "c", "a", ver(5, gossip.MaxMinor))}})
	r.want("a suspicion that no minor is above", "superseded by 5.1", "stopped")
}

// TestAliveOutOfView (3, 7): who is in neither view nor history joins; out of the
// history only who is newer.
func TestAliveOutOfView(t *testing.T) {
	r := newRig(t, nil)
	r.join("b")
	r.want("a new node", "join b 1.1")
	r.inform(Message{Leaves: []Departure{{Node: r.index("b"), Version: ver(1, 1)}}})
	r.want("it leaves", "leave b 1.1 departed")
	r.join("b")
	r.want("a stale alive")
	r.inform(Message{Alives: []Entry{r.entry("b", 1, 2)}})
	r.want("a newer one", "join b 1.2")
	if n := len(r.History(nil)); n != 0 {
		t.Errorf("it is in the history, too: %d entries", n)
	}
}

// TestNewerAlivePrunesOlderSuspicions (7, trap): a suspicion that is as new as
// the alive stays.
func TestNewerAlivePrunesOlderSuspicions(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Theta, c.Ks = 3, 3 })
	r.join("b", "c", "d", "e", "f")
	r.inform(Message{Suspicions: []Suspicion{suspicion(r, "c", "b", ver(1, 1)), suspicion(r, "d", "b", ver(1, 2))}})
	r.inform(Message{Alives: []Entry{r.entry("b", 1, 2)}})
	if s := r.Suspicions(); len(s) != 1 || s[0].Reporter != idOf("d").Key() {
		t.Fatalf("left: %+v, want that of d", s)
	}
	r.inform(Message{Alives: []Entry{r.entry("b", 1, 3)}})
	if s := r.Suspicions(); len(s) != 0 {
		t.Errorf("left: %+v, want none", s)
	}
}

// TestNewIncarnationLeavesThenJoins (7, trap): a new minor gives no notice.
func TestNewIncarnationLeavesThenJoins(t *testing.T) {
	r := newRig(t, nil)
	r.join("b")
	r.take()
	r.inform(Message{Alives: []Entry{r.entry("b", 1, 2)}})
	r.want("a new minor")
	r.inform(Message{Alives: []Entry{r.entry("b", 2, 1)}})
	r.want("a new incarnation", "leave b 1.2 restarted", "join b 2.1")
	r.inform(Message{Alives: []Entry{r.entry("b", 1, 9)}})
	r.want("the old one again")
}

// TestLeaveInView (8): at the view's version or a newer one, and no older.
func TestLeaveInView(t *testing.T) {
	r := newRig(t, nil)
	r.join("c")
	r.inform(Message{Alives: []Entry{r.entry("b", 1, 4)}})
	r.take()
	r.inform(Message{Leaves: []Departure{{Node: r.index("b"), Version: ver(1, 3)}}})
	r.want("an older leave")
	r.inform(Message{Leaves: []Departure{{r.index("b"), ver(1, 4), gossip.Exit{Given: true, Code: 9}, nil}}})
	r.want("the leave", "leave b 1.4 departed with 9")
	r.inform(Message{Leaves: []Departure{{Node: r.index("c"), Version: ver(1, 8)}}})
	r.want("a newer leave", "leave c 1.8 departed")
}

// TestLeaveOutOfViewGivesNoNotice (8, trap): it updates the history, and is
// passed on; what is unknown, or not newer, is not.
func TestLeaveOutOfViewGivesNoNotice(t *testing.T) {
	r := newRig(t, nil)
	r.accept("c", gossip.Ring)
	r.join("b")
	r.inform(Message{Leaves: []Departure{{Node: r.index("b"), Version: ver(1, 1)}}})
	r.pass(time.Second)
	r.take()
	leave := func(name string, v Version) {
		r.inform(Message{Leaves: []Departure{{Node: r.index(name), Version: v}}})
	}
	leave("b", ver(1, 1))
	leave("d", ver(1, 1))
	r.pass(time.Second)
	if r.logged("left:") || r.logged("leave ") {
		t.Errorf("news of nothing: %q", r.take())
	}
	leave("b", ver(1, 5))
	if r.logged("leave b") {
		t.Error("a notice of who was out of the view")
	}
	r.pass(time.Second)
	if !r.logged("update left:b,1.5") {
		t.Errorf("not passed on: %q", r.take())
	}
	r.inform(Message{Alives: []Entry{r.entry("b", 1, 4)}})
	if r.Has(r.index("b")) {
		t.Error("an alive older than the history's version joins")
	}
}

// TestSuspicionOfMyselfIsRefuted (9): the minor rises, and is reported; a suspicion
// that was refuted before changes nothing.
func TestSuspicionOfMyselfIsRefuted(t *testing.T) {
	r := newRig(t, nil)
	r.accept("c", gossip.Ring)
	r.pass(time.Second)
	r.take()
	r.inform(Message{Suspicions: []Suspicion{suspicion(r, "c", "a", ver(5, 1))}})
	r.inform(Message{Suspicions: []Suspicion{suspicion(r, "d", "a", ver(5, 1))}})
	if v := r.Self().Version; v != (ver(5, 2)) {
		t.Fatalf("its version is %v, want 5.2", v)
	}
	r.pass(r.cfg.Tau)
	if !r.logged("update alive:a,5.2") {
		t.Errorf("not reported: %q", r.log)
	}
}

// TestSuspicionBelowTheViewIsDiscarded (9).
func TestSuspicionBelowTheViewIsDiscarded(t *testing.T) {
	r := newRig(t, nil)
	r.inform(Message{Alives: []Entry{r.entry("b", 1, 4), r.entry("c", 1, 1)}})
	r.take()
	r.inform(Message{Suspicions: []Suspicion{suspicion(r, "c", "b", ver(1, 3)), suspicion(r, "c", "d", ver(1, 3))}})
	r.want("an older version, and an unknown node")
	r.inform(Message{Suspicions: []Suspicion{suspicion(r, "c", "b", ver(1, 4))}})
	r.want("the view's version", "leave b 1.4 suspected")
}

// TestThreshold (9): Theta different reporters; the same one counts once, also
// with a newer version.
func TestThreshold(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Theta, c.Ks = 3, 3 })
	r.join("b", "c", "d", "e", "f", "g")
	r.take()
	for _, reporter := range []string{"c", "c", "d"} {
		r.inform(Message{Suspicions: []Suspicion{suspicion(r, reporter, "b", ver(1, 1))}})
	}
	r.inform(Message{Suspicions: []Suspicion{suspicion(r, "c", "b", ver(1, 2))}})
	if !r.Has(r.index("b")) || len(r.Suspicions()) != 2 {
		t.Fatalf("after two reporters: in view %v, suspicions %+v", r.Has(r.index("b")), r.Suspicions())
	}
	r.inform(Message{Suspicions: []Suspicion{suspicion(r, "e", "b", ver(1, 1))}})
	if r.Has(r.index("b")) || r.Version(r.index("b")) != (ver(1, 2)) {
		t.Errorf("after three: in view %v, version %v, want removed at 1.2", r.Has(r.index("b")), r.Version(r.index("b")))
	}
}

// TestThresholdInSmallViews (9): a view gives no more reporters than it has
// members who are not suspected.
func TestThresholdInSmallViews(t *testing.T) {
	for _, c := range []struct {
		others    []string
		suspected []string // by b in turn
		dead      []string
	}{
		{[]string{"b"}, []string{"b"}, []string{"b"}},                                              // a alone is left to report
		{[]string{"b", "c"}, []string{"c"}, nil},                                                   // a can, too
		{[]string{"b", "c", "d"}, []string{"c", "d"}, nil},                                         // likewise
		{[]string{"b", "c", "d"}, []string{"b", "c", "d"}, []string{"b", "c", "d"}},                // a is left of all
		{[]string{"b", "c", "d", "e"}, []string{"b", "c", "d", "e"}, []string{"b", "c", "d", "e"}}, // however many
	} {
		r := newRig(t, func(c *Config) { c.Theta, c.Ks = 2, 2 })
		r.join(c.others...)
		for _, s := range c.suspected {
			reporter := "b"
			if s == "b" {
				reporter = "c"
			}
			r.inform(Message{Suspicions: []Suspicion{suspicion(r, reporter, s, ver(1, 1))}})
		}
		for _, o := range c.others {
			dead := false
			for _, d := range c.dead {
				dead = dead || d == o
			}
			if r.Has(r.index(o)) == dead {
				t.Errorf("of %v %v were suspected: %s is in the view: %v", c.others, c.suspected, o, !dead)
			}
		}
	}
}

// TestLeavesBeforeAlivesBeforeSuspicions (11, trap): in any other order this
// message would give a notice too many, or lose a node.
func TestLeavesBeforeAlivesBeforeSuspicions(t *testing.T) {
	r := newRig(t, nil)
	r.join("b", "c", "d")
	r.take()
	r.inform(Message{
		Suspicions: []Suspicion{suspicion(r, "d", "b", ver(1, 1))},
		Alives:     []Entry{r.entry("b", 1, 2), r.entry("c", 1, 2)},
		Leaves:     []Departure{{Node: r.index("c"), Version: ver(1, 1)}},
	})
	r.want("all at once", "leave c 1.1 departed", "join c 1.2")
	if !r.Has(r.index("b")) || !r.Has(r.index("c")) {
		t.Errorf("b in view: %v, c in view: %v", r.Has(r.index("b")), r.Has(r.index("c")))
	}
}

// TestUpdateDoesNotReviveWhoLeft (11): an alive that was gathered is not sent
// with the leave that came after it.
func TestUpdateDoesNotReviveWhoLeft(t *testing.T) {
	r := newRig(t, nil)
	r.accept("c", gossip.Ring)
	r.pass(time.Second)
	r.take()
	r.join("b")
	r.inform(Message{Leaves: []Departure{{Node: r.index("b"), Version: ver(1, 1)}}})
	r.pass(r.cfg.Tau)
	if !r.logged("update left:b,1.1,-") || r.logged("alive:b") {
		t.Errorf("sent: %q", r.log)
	}
}

// TestHistoryIsPrunedByAgeOnceLarge (3).
func TestHistoryIsPrunedByAgeOnceLarge(t *testing.T) {
	r := newRig(t, func(c *Config) { c.History, c.Remember = 2, time.Minute })
	r.join("b", "c", "d", "e", "f")
	gone := func(name string) { r.inform(Message{Leaves: []Departure{{Node: r.index(name), Version: ver(1, 1)}}}) }
	gone("b")
	gone("c")
	r.pass(2 * time.Minute)
	if n := len(r.History(nil)); n != 2 {
		t.Fatalf("%d in the history, want both: it is not too large", n)
	}
	gone("d")
	if h := r.History(nil); len(h) != 1 || h[0].Node != r.index("d") {
		t.Fatalf("history %+v, want d alone", h)
	}
	gone("e")
	gone("f")
	if n := len(r.History(nil)); n != 3 {
		t.Errorf("%d in the history, want 3: too many, but young", n)
	}
}

// TestDeathsReportRebootsAndAreNotReported (server collectives, 42): a changed counter
// means a reboot, also of who was forgotten meanwhile.
func TestDeathsReportRebootsAndAreNotReported(t *testing.T) {
	r := newRig(t, func(c *Config) { c.History, c.Remember = 0, 0 })
	b := r.index("b")
	seen := map[uint32]bool{}
	for i := range uint32(3) {
		r.inform(Message{Alives: []Entry{r.entry("b", 1+uint64(i), 1)}})
		if seen[r.Deaths(b)] {
			t.Fatalf("counter %d again after reboot %d", r.Deaths(b), i)
		}
		seen[r.Deaths(b)] = true
	}
	r.inform(Message{Leaves: []Departure{{Node: b, Version: ver(9, 1)}}})
	r.pass(time.Second)
	r.join("c")
	r.inform(Message{Leaves: []Departure{{Node: r.index("c"), Version: ver(9, 1)}}}) // b is pruned
	r.inform(Message{Alives: []Entry{r.entry("b", 10, 1)}})
	if seen[r.Deaths(b)] {
		t.Errorf("counter %d again after it was forgotten", r.Deaths(b))
	}
}
