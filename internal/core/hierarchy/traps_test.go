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

// TestDelegatesAreReplacedAtOnce (20, trap): no time passes but that of messages.
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

// TestSupervisorsAreReplacedAtOnce (20, trap): one after the other, and at last all that
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

// TestLinksAreReplacedAtOnce (20, trap): a link that breaks is dialled again without a
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

// TestOneSupervisorOfEachIsEnough (20): while the others are replaced, every death is
// reported, and by both delegates, of which one is enough, too.
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
	reported := func(s *actor) bool {
		return slices.ContainsFunc(s.notices, func(n Notice) bool {
			return n.Kind == member.Leave && n.ID == victim.id && n.Cause == member.Suspected
		})
	}
	if !reported(w.holders(0)[1]) {
		t.Error("the other supervisor was not notified")
	}
	if reported(s) {
		t.Error("it was reported by one delegate, and the other has not said so")
	}
	w.pass(time.Duration(w.settings.Silence+1) * w.settings.Beat)
	if !reported(s) {
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

// TestRestartIsLeaveAndJoin, once, whichever delegate reports it first.
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

// TestHeirThatFails (20): where the heir of a zone dies, or is not to be reached, who
// hands it over keeps it.
func TestHeirThatFails(t *testing.T) {
	for _, dies := range []bool{true, false} {
		w := together(t, 4, 2, 2)
		heir := w.start(w.mesh)
		heir.deaf = true
		giver := func() *base {
			for _, s := range w.mesh.living() {
				for _, b := range s.supervisor.held {
					if b.heir == heir.life {
						return b
					}
				}
			}
			return nil
		}
		for giver() == nil && w.now < core.Time(time.Minute) {
			w.pass(time.Second)
		}
		b := giver()
		if b == nil {
			t.Fatal("nobody hands anything over")
		}
		if dies {
			w.kill(heir)
		}
		w.pass(w.settings.Balance + time.Second)
		if dies {
			w.expect(t)
		}
		if b.heir == heir.life || len(w.holders(b.zone)) != 2 {
			t.Errorf("dies %v: heir %x, %d supervisors", dies, b.heir, len(w.holders(b.zone)))
		}
	}
}

// TestContactsOutliveDelegates (20): what delegates were given of the management
// zone the whole zone knows. Nodes that are elected when the delegates died
// together find it, though all whom they were configured with are gone.
func TestContactsOutliveDelegates(t *testing.T) {
	w := together(t, 1, 4, 3)
	configured := slices.Clone(w.mesh.nodes)
	for range 4 {
		w.start(w.mesh)
	}
	w.pass(time.Second)
	for _, s := range configured {
		w.kill(s)
		w.pass(time.Second)
	}
	w.expect(t)
	late := w.start(w.bases[0])
	w.pass(time.Second)
	for _, a := range w.delegates(0) {
		if _, has := a.Attribute(a.life, ContactsKey); !has {
			t.Errorf("%s does not pass on whom it was notified of", a.id)
		}
	}
	if len(late.delegate.contacts.known) == 0 {
		t.Error("who joins late is not reported")
	}
	for _, a := range w.delegates(0) {
		w.kill(a)
	}
	w.pass(time.Second)
	w.expect(t)
}

// TestZoneFindsTheHierarchyAgain (20): all of the management zone dies, and comes
// back after a minute with nothing in its memory.
func TestZoneFindsTheHierarchyAgain(t *testing.T) {
	w := together(t, 3, 3, 4)
	for _, s := range slices.Clone(w.mesh.nodes) {
		w.kill(s)
	}
	w.pass(time.Minute)
	for _, s := range slices.Clone(w.mesh.nodes) {
		w.begin(w.mesh, s.id, 2)
	}
	w.pass(w.settings.Settle + 5*w.settings.Retry)
	w.expect(t)
}

// TestDelegateThatReachesNobodyStepsBack (20): for a node that can; and it does
// not stand again for Linger. Where there is no other it remains.
func TestDelegateThatReachesNobodyStepsBack(t *testing.T) {
	w := newWorld(t, 1, 1, 3, 3, DefaultSettings())
	for _, a := range w.all {
		w.hear(a, len(a.news))
	}
	order := Candidates(w.bases[0].nodes[0], 0, 3)
	for _, i := range order[:2] {
		w.bases[0].nodes[i].cut = true
	}
	able := w.bases[0].nodes[order[2]]
	w.pass(w.settings.Settle + strayPatiences*w.settings.Patience/2)
	if able.delegate.Active() {
		t.Fatal("it was elected first: the test shows nothing")
	}
	w.pass(2 * strayPatiences * w.settings.Patience)
	if n := len(w.delegates(0)); !able.delegate.Active() || n != 2 {
		t.Fatalf("%d delegates, of them the one that can: %v", n, able.delegate.Active())
	}
	if n := len(w.holders(0)); n != 2 {
		t.Errorf("the zone has %d supervisors", n)
	}
	for _, i := range order[:2] {
		w.bases[0].nodes[i].cut = false
	}
	w.pass(w.settings.Linger + time.Second)
	w.expect(t)
	for _, a := range w.bases[0].nodes {
		if value, _ := a.Attribute(a.life, DelegateKey); string(value) == string(later) {
			t.Errorf("%s still says after Linger that it is not to be elected", a.id)
		}
	}
}

// TestPatienceWithoutSupervisors: those who stepped back make others wait for
// longer, and those who are never to be elected do not.
func TestPatienceWithoutSupervisors(t *testing.T) {
	w := together(t, 1, 5, 1)
	a := w.delegates(0)[0]
	for k, value := range [][]byte{no, no, later} {
		one := w.bases[0].nodes[4-k]
		if one == a {
			one = w.bases[0].nodes[0]
		}
		text := string(value)
		a.news = append(a.news, news{about: one, kind: keyNews, key: DelegateKey, value: &text})
	}
	w.hear(a, len(a.news))
	if got, want := a.delegate.strays(), 2*strayPatiences*w.settings.Patience; got != want {
		t.Errorf("%v, want %v", got, want)
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

// TestFindsNodes: who has a node in a zone that it supervises.
func TestFindsNodes(t *testing.T) {
	w := together(t, 2, 3, 3)
	s := w.holders(1)[0].supervisor
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
