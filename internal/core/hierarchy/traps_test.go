package hierarchy

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
	wire "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// together returns a world that has come together.
func together(t *testing.T, zones, size, supervisors int) *world {
	t.Helper()
	w := newWorld(t, 1, zones, size, supervisors, DefaultSettings())
	w.pass(2 * time.Second)
	w.expect(t)
	return w
}

func (w *world) expect(t *testing.T) {
	t.Helper()
	if text := w.wrong(); text != "" {
		t.Fatal(text)
	}
}

func (w *world) delegates(zone int) (all []*actor) {
	for _, a := range w.bases[zone].living() {
		if a.delegate.Active() {
			all = append(all, a)
		}
	}
	return all
}

func (w *world) holders(zone wire.Zone) (all []*actor) {
	for _, s := range w.mesh.living() {
		if s.supervisor.base(zone) != nil {
			all = append(all, s)
		}
	}
	return all
}

// TestDelegatesAreReplacedAtOnce: no time passes but that of messages.
func TestDelegatesAreReplacedAtOnce(t *testing.T) {
	w := together(t, 2, 5, 4)
	for len(w.bases[0].living()) > 1 {
		for _, a := range w.delegates(0) {
			w.kill(a)
			break
		}
		w.pass(0)
		w.expect(t)
	}
	w.start(w.bases[0])
	w.pass(time.Second)
	w.expect(t)
}

// TestSupervisorsAreReplacedAtOnce: one after the other, and at last all that
// there are of a zone together, which a pause between two attempts may cost.
func TestSupervisorsAreReplacedAtOnce(t *testing.T) {
	w := together(t, 3, 3, 7)
	first := w.mesh.nodes[0].id // the contact
	for _, s := range w.holders(0) {
		if s.id != first {
			w.kill(s)
			w.pass(2 * w.settings.Retry)
			w.expect(t)
		}
	}
	for _, s := range w.holders(1) {
		if s.id != first {
			w.kill(s)
		} else {
			w.restart(s)
		}
	}
	w.pass(w.settings.Settle + 2*w.settings.Retry)
	w.expect(t)
}

// TestLinksAreReplacedAtOnce: a link that breaks is dialled again without a
// pause; one that is silent after Silence beats.
func TestLinksAreReplacedAtOnce(t *testing.T) {
	w := together(t, 1, 3, 3)
	for _, d := range w.delegates(0) {
		for _, s := range w.holders(0) {
			for _, l := range w.between(d, s) {
				l.breaks()
			}
			w.pass(0)
			w.expect(t)
			for _, l := range w.between(d, s) {
				l.muted = true
			}
			w.pass(time.Duration(w.settings.Silence+1) * w.settings.Beat)
			w.expect(t)
		}
	}
}

// TestDialsThatNobodyAnswers, not even by a refusal, are given up: a process that
// hangs, and whose host connects for it, keeps no delegate from asking others,
// and no fetch from its end.
func TestDialsThatNobodyAnswers(t *testing.T) {
	w := newWorld(t, 1, 1, 2, 5, DefaultSettings())
	contacts := w.mesh.nodes[:3]
	contacts[0].deaf, contacts[1].deaf = true, true
	for _, s := range contacts[:2] { // they hang: nobody has heard of them
		for _, a := range w.mesh.nodes {
			a.news = slices.DeleteFunc(a.news, func(n news) bool { return n.about == s })
		}
		s.news = nil
	}
	limit := time.Duration(w.settings.Silence) * w.settings.Beat
	w.pass(w.settings.Settle + 2*limit + 3*w.settings.Retry)
	if n := len(w.holders(0)); n != 2 {
		t.Fatalf("%d supervisors", n)
	}
	s := w.mesh.nodes[2]
	for _, h := range w.holders(0) {
		h.deaf = h != s
	}
	asks := slices.IndexFunc(w.mesh.nodes, func(a *actor) bool { return !a.deaf && a.supervisor.base(0) == nil })
	if asks < 0 {
		t.Fatal("everybody supervises the zone")
	}
	w.mesh.nodes[asks].supervisor.Fetch(0, false)
	w.pass(3 * limit)
	if views := w.mesh.nodes[asks].views; len(views) != 1 {
		t.Errorf("%d answers to a fetch", len(views))
	}
}

// TestOneSupervisorOfEachIsEnough: while the others are replaced, every death is
// told, and by both delegates, of which one is enough, too.
func TestOneSupervisorOfEachIsEnough(t *testing.T) {
	w := together(t, 1, 6, 3)
	s := w.holders(0)[0]
	d := w.delegates(0)
	for _, l := range w.between(d[0], s) {
		l.muted = true // nobody knows yet
	}
	victim := w.bases[0].nodes[slices.IndexFunc(w.bases[0].nodes, func(a *actor) bool { return !a.delegate.Active() })]
	w.kill(victim)
	w.pass(0)
	told := func(s *actor) bool {
		return slices.ContainsFunc(s.notices, func(n Notice) bool {
			return n.Kind == member.Leave && n.ID == victim.id && n.Cause == member.Suspected
		})
	}
	if !told(w.holders(0)[1]) {
		t.Error("the other supervisor was not told")
	}
	if told(s) {
		t.Error("it was told by one delegate, and the other has not said so")
	}
	w.pass(time.Duration(w.settings.Silence+1) * w.settings.Beat)
	if !told(s) {
		t.Error("a silent delegate still vouches")
	}
	w.expect(t)
}

// TestZoneThatPartedIsWhole: half of a zone is dead for one delegate, the other
// half for the other; for the supervisors nobody is.
func TestZoneThatPartedIsWhole(t *testing.T) {
	v := newView(7)
	var out Output
	one := gossip.Version{Incarnation: 1, Minor: 1}
	var members []wire.Member
	for i := range 6 {
		members = append(members, wire.Member{ID: gossip.ID(fmt.Sprintf("h%d@10.0.0.%d:1", i, i+1)), Version: one})
	}
	for slot := range 2 {
		for i := range members {
			v.alive(&members[i], slot, &out)
		}
	}
	digest := v.digest
	for i := range members {
		v.leave(&wire.Leave{ID: members[i].ID, Version: one, Cause: uint8(member.Suspected)}, i%2, &out)
	}
	if len(v.entries) != len(members) || v.digest != digest || len(out.Notices) != len(members) {
		t.Errorf("%d of %d are left, %d notices", len(v.entries), len(members), len(out.Notices))
	}
	v.unvouch(0) // the one delegate is lost
	v.reconcile(&out)
	if len(v.entries) != 3 {
		t.Errorf("%d are left, want the 3 of the other's half", len(v.entries))
	}
}

// TestRestartIsLeaveAndJoin, once, whichever delegate tells it first.
func TestRestartIsLeaveAndJoin(t *testing.T) {
	v := newView(7)
	var out Output
	m := wire.Member{ID: "h1@10.0.0.1:1", Version: gossip.Version{Incarnation: 1, Minor: 1}}
	v.alive(&m, 0, &out)
	v.alive(&m, 1, &out)
	out.Reset()
	again := m
	again.Version = gossip.Version{Incarnation: 2, Minor: 1}
	for slot := range 2 {
		v.leave(&wire.Leave{ID: m.ID, Version: m.Version, Cause: uint8(member.Restarted)}, slot, &out)
		v.alive(&again, slot, &out)
	}
	if len(out.Notices) != 2 || out.Notices[0].Cause != member.Restarted || out.Notices[1].Version != again.Version {
		t.Errorf("%+v", out.Notices)
	}
	if v.digest != uint64(m.ID.Key().Life(2)) {
		t.Error("the digest is not that of the view")
	}
}

// TestElectionKeepsWhoIsElected: a node that would go first changes nothing.
func TestElectionKeepsWhoIsElected(t *testing.T) {
	w := together(t, 1, 4, 3)
	before := w.delegates(0)
	for range 10 {
		w.start(w.bases[0])
		w.pass(time.Second)
	}
	w.expect(t)
	if after := w.delegates(0); !slices.Equal(before, after) {
		t.Error("delegates were replaced by nodes that have joined")
	}
	if first := Candidates(before[0], 0, 2); w.bases[0].nodes[first[0]].delegate.Active() && w.bases[0].nodes[first[1]].delegate.Active() {
		t.Error("none of ten would go before the delegates: the test shows nothing")
	}
}

// TestPatience: whoever should stand and does not is passed over.
func TestPatience(t *testing.T) {
	w := newWorld(t, 1, 1, 4, 3, DefaultSettings())
	order := Candidates(w.bases[0].nodes[0], 0, 4)
	if len(order) != 1 { // nobody has heard of anybody yet
		t.Fatalf("%d nodes in the view", len(order))
	}
	for _, a := range w.all {
		w.hear(a, len(a.news))
	}
	order = Candidates(w.bases[0].nodes[0], 0, 4)
	for _, i := range order[:2] { // they hang: they are in all views, and do nothing
		w.bases[0].nodes[i].delegate.cfg.Never = true
	}
	w.pass(w.settings.Settle + w.settings.Patience/2)
	if n := len(w.delegates(0)); n != 0 {
		t.Fatalf("%d delegates before Patience", n)
	}
	w.pass(w.settings.Patience)
	if n := len(w.delegates(0)); n != 1 {
		t.Errorf("%d delegates after Patience", n)
	}
	w.pass(w.settings.Patience) // the last place's turn is after two
	if n := len(w.delegates(0)); n != 2 {
		t.Errorf("%d delegates after twice Patience", n)
	}
}

// TestNeverElected: who says that it will not be is not waited for.
func TestNeverElected(t *testing.T) {
	w := newWorld(t, 1, 1, 3, 3, DefaultSettings())
	for _, a := range w.all {
		w.hear(a, len(a.news))
	}
	first := w.bases[0].nodes[Candidates(w.bases[0].nodes[0], 0, 1)[0]]
	cfg := first.delegate.cfg
	cfg.Never = true
	var err error
	if first.delegate, err = NewDelegate(cfg, first, w.now); err != nil {
		t.Fatal(err)
	}
	w.pass(w.settings.Settle)
	if n := len(w.delegates(0)); n != 2 || first.delegate.Active() || first.deadline() != core.Never {
		t.Errorf("%d delegates, it is one: %v", n, first.delegate.Active())
	}
}

// TestPlacementIsBalanced: zones numbered from 0 are spread evenly over any
// number of supervisors, each to as many different ones as wanted; and who goes
// or comes moves nobody who supervises.
func TestPlacementIsBalanced(t *testing.T) {
	for _, test := range []struct{ zones, supervisors int }{{512, 512}, {1024, 1024}, {512, 64}, {100, 7}, {33, 32}, {5, 3}} {
		w := newWorld(t, 1, 0, 0, test.supervisors, DefaultSettings())
		mesh := w.mesh.nodes[0]
		for _, a := range w.mesh.nodes {
			w.hear(a, len(a.news))
		}
		h := newHoldings()
		for z := range wire.Zone(test.zones) {
			all := h.assigned(z, mesh, 2)
			if len(all) != 2 || all[0] == all[1] {
				t.Fatalf("zone %d is assigned to %v", z, all)
			}
			for _, life := range all {
				h.put(z, life, Summary{})
			}
		}
		mean := float64(2*test.zones) / float64(test.supervisors)
		for _, a := range w.mesh.nodes {
			if n := float64(h.loads[a.life]); n > mean+3 {
				t.Errorf("%+v: a supervisor has %v zones, the mean is %.1f", test, n, mean)
			}
		}
		w.kill(w.mesh.nodes[1])
		w.hear(mesh, 1)
		h.forget(mesh)
		for z := range wire.Zone(test.zones) {
			for _, one := range slices.Clone(h.zones[z]) {
				if all := h.assigned(z, mesh, 2); !slices.Contains(all, one.life) {
					t.Fatalf("zone %d is moved from one that has it", z)
				}
			}
		}
	}
}

// TestZoneWithoutDelegates stays in the census, without delegates, and goes after
// Linger.
func TestZoneWithoutDelegates(t *testing.T) {
	w := together(t, 2, 2, 3)
	for _, a := range w.bases[1].nodes {
		w.kill(a)
	}
	w.pass(time.Second)
	s := w.mesh.nodes[2].supervisor
	if summary, n := s.Summary(1); n != 2 || summary.Delegates != 0 || summary.Size == 0 {
		t.Errorf("%+v of %d supervisors", summary, n)
	}
	w.pass(w.settings.Linger)
	if rows := s.Census(); len(rows) != 1 || rows[0].Zone != 0 {
		t.Errorf("census %+v", rows)
	}
}

// TestFetchedViewComesInPieces, whole, also where it is supervised.
func TestFetchedViewComesInPieces(t *testing.T) {
	settings := DefaultSettings()
	settings.PieceBytes = minPiece
	w := newWorld(t, 1, 1, 60, 4, settings)
	w.pass(2 * time.Second)
	w.expect(t)
	for _, s := range w.mesh.nodes {
		s.supervisor.Fetch(0, false)
		w.pass(time.Second)
		if len(s.views) != 1 || len(s.views[0].Members) != 60 || len(s.supervisor.fetches) != 0 {
			t.Errorf("%s has %d views, %d fetches go on", s.id, len(s.views), len(s.supervisor.fetches))
		}
	}
}

// TestFetchWaitsForTheWholeView: a supervisor whose delegates have not told all
// of their zone yet does not give what it has, neither here nor elsewhere.
func TestFetchWaitsForTheWholeView(t *testing.T) {
	w := together(t, 1, 3, 4)
	s := w.holders(0)[0].supervisor
	b := s.base(0)
	b.whole = false
	s.links = append(s.links, downlink{end: end{link: 999, open: true}, slot: none})
	var l *downlink
	for i := range s.links {
		if s.links[i].slot != none {
			l = &s.links[i]
		}
	}
	l.complete = false
	asker, now := &s.links[len(s.links)-1], w.now
	var out Output
	s.Fetch(0, false)
	s.fetch(now, &out)
	s.give(now, asker, &wire.Fetch{Zone: 0}, &out)
	if len(out.Views)+len(out.Sends) > 0 {
		t.Fatalf("given before it is whole: %d views, %d messages", len(out.Views), len(out.Sends))
	}
	s.change(now, b, l, &wire.Change{Zone: 0, Base: true, Last: true, Alives: b.members()}, &out)
	s.fetch(now, &out)
	if len(out.Views) != 1 || len(out.Views[0].Members) != 3 || len(s.fetches) != 0 {
		t.Errorf("views %+v, %d fetches go on", out.Views, len(s.fetches))
	}
	if given := slices.ContainsFunc(out.Sends, func(x Send) bool { return x.Link == 999 }); !given {
		t.Errorf("who asked is sent nothing: %+v", out.Sends)
	}
}

// TestFindsNodes: who has a node in a zone that it supervises.
func TestFindsNodes(t *testing.T) {
	w := together(t, 2, 3, 3)
	s := w.holders(1)[0].supervisor
	if zones := s.Find(w.bases[1].nodes[0].id); !slices.Equal(zones, []wire.Zone{1}) {
		t.Errorf("it is in zones %v", zones)
	}
	if _, err := s.Members(9); !errors.Is(err, ErrUnknownZone) {
		t.Errorf("zone 9: %v", err)
	}
	if ids := w.delegates(1)[0].delegate.Delegates(); len(ids) != 1 {
		t.Errorf("%d other delegates", len(ids))
	}
}

func TestConfig(t *testing.T) {
	good := DelegateConfig{Settings: DefaultSettings(), Contacts: []gossip.ID{"s1@10.0.0.1:1"}}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*DelegateConfig){
		"delegates":   func(c *DelegateConfig) { c.Delegates = MaxDelegates + 1 },
		"supervisors": func(c *DelegateConfig) { c.Supervisors = 0 },
		"settle":      func(c *DelegateConfig) { c.Settle = 0 },
		"patience":    func(c *DelegateConfig) { c.Patience = 0 },
		"retry":       func(c *DelegateConfig) { c.Retry = -1 },
		"beat":        func(c *DelegateConfig) { c.Beat = 0 },
		"silence":     func(c *DelegateConfig) { c.Silence = 1 },
		"linger":      func(c *DelegateConfig) { c.Linger = 0 },
		"pieces":      func(c *DelegateConfig) { c.PieceBytes = minPiece - 1 },
		"no contact":  func(c *DelegateConfig) { c.Contacts = nil },
		"a contact":   func(c *DelegateConfig) { c.Contacts = []gossip.ID{"nobody"} },
	} {
		c := good
		c.Contacts = slices.Clone(good.Contacts)
		change(&c)
		if err := c.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
