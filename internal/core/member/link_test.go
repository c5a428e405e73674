package member

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// TestSuspicionOnFailedConnection (6): after probes that nobody answers; a node
// that does is only linked to again.
func TestSuspicionOnFailedConnection(t *testing.T) {
	for _, dead := range []bool{true, false} {
		r := newRig(t, nil)
		l := r.accept("b", gossip.Ring)
		if dead {
			r.silence("b")
		}
		r.step(Input{Kind: Failed, Link: l})
		r.pass(r.cfg.Confirm)
		if r.Has(r.index("b")) == dead {
			t.Errorf("dead %v, in the view: %v", dead, r.Has(r.index("b")))
		}
		if r.pass(r.cfg.Tau); !dead && !r.logged("dial b") {
			t.Error("the link is not made again")
		}
	}
}

// TestNewLinkEndsProbing: who links again is there, whether it answers probes or
// not.
func TestNewLinkEndsProbing(t *testing.T) {
	r := newRig(t, nil)
	l := r.accept("b", 0)
	r.silence("b")
	r.step(Input{Kind: Failed, Link: l})
	r.pass(r.cfg.Confirm / 2)
	r.accept("b", gossip.Random)
	r.pass(r.cfg.Confirm)
	if !r.Has(r.index("b")) {
		t.Error("suspected, though it has linked again")
	}
}

// TestSuspicionOnHeartbeatTimeout (6): one heartbeat that is overdue has the node
// probed, and it is suspected when it has not answered for Grace. One that
// answers is not.
func TestSuspicionOnHeartbeatTimeout(t *testing.T) {
	for _, dead := range []bool{true, false} {
		r := newRig(t, nil)
		l := r.accept("b", 0)
		r.frame(l, Message{Type: gossip.Watchers, Watchers: []Index{r.self}})
		tag := r.links[0].tag
		for i := range uint32(3) {
			r.pass(r.cfg.beat())
			r.step(Input{Kind: Beat, Pulse: gossip.Pulse{Tag: tag, Sequence: i + 1, Turns: 1, View: quarter(r.Digest(), i+1)}})
		}
		if r.logged("probe") {
			t.Fatalf("probed though heartbeats come: %q", r.log)
		}
		if dead {
			r.silence("b")
		}
		r.pass(r.cfg.beat() + r.cfg.Heartbeat/slack)
		if !r.logged("to b: probe") {
			t.Fatal("not probed")
		}
		r.pass(r.cfg.Grace + time.Millisecond)
		if r.Has(r.index("b")) == dead {
			t.Errorf("dead %v, in the view: %v", dead, r.Has(r.index("b")))
		}
	}
}

// TestSuspicionOnFailedDialOfSuccessorOnly (6, trap): a random neighbour that
// cannot be reached is replaced and not suspected.
func TestSuspicionOnFailedDialOfSuccessorOnly(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Kr = 1 })
	names := strings.Split("bcdefghijklmnop", "")
	r.join(names...)
	r.pass(r.cfg.Tau)
	successor := r.successors()[0]
	r.silence(r.name(successor))
	other := Nobody
	for _, d := range r.links {
		if d.peer != successor {
			other = d.peer
			r.silence(r.name(other))
			r.step(Input{Kind: ConnectFailed, Link: d.number})
			break
		}
	}
	if other == Nobody {
		t.Fatalf("no random neighbour dialled: %+v", r.links)
	}
	r.pass(r.cfg.Confirm)
	if !r.Has(other) || r.probing(other) != nil {
		t.Error("a random neighbour is suspected because it cannot be dialled")
	}
	r.step(Input{Kind: ConnectFailed, Link: r.linkTo(successor).number})
	r.pass(r.cfg.Confirm)
	if r.Has(successor) {
		t.Error("a successor that cannot be dialled is not suspected")
	}
}

// TestSuccessorOverStandingLinkIsLookedAfter (5, 6, trap): where a link stands
// already when its other end becomes the successor, nothing is dialled that
// could fail; the successor is probed instead.
func TestSuccessorOverStandingLinkIsLookedAfter(t *testing.T) {
	r := newRig(t, nil)
	r.join("b", "c")
	first := r.successors()[0]
	second := r.index("b") + r.index("c") - first
	r.accept(r.name(second), gossip.Random)
	l := r.accept(r.name(first), gossip.Ring)
	r.pass(time.Second)
	r.silence("b", "c")
	r.step(Input{Kind: Failed, Link: l})
	r.pass(r.cfg.Confirm + r.cfg.Heartbeat + r.cfg.Grace + r.cfg.Confirm)
	if r.Has(second) {
		t.Error("a successor that was linked to before, and is dead, stays in the view")
	}
}

// TestMonitorsAreReportedAtOnce (12): all of them, by datagram, by who watches; who
// only stands by leaves it to those before it.
func TestMonitorsAreReportedAtOnce(t *testing.T) {
	for _, c := range []struct {
		what    string
		list    []string // what b says of its watchers
		answers bool     // the others on it do
		want    bool
	}{
		{"a watcher", []string{"a"}, true, true},
		{"the last of the watchers", []string{"c", "d", "e", "a"}, true, true},
		{"a deputy", []string{"c", "d", "e", "f", "a"}, true, false},
		{"a deputy of the dead", []string{"c", "d", "e", "f", "a"}, false, true},
	} {
		r := newRig(t, nil)
		r.join("c", "d", "e", "f", "m", "n")
		r.step(Input{Kind: SetMonitors, Nodes: []Index{r.index("m"), r.index("n"), r.self}})
		l := r.accept("b", gossip.Random)
		m := Message{Type: gossip.Watchers}
		for _, n := range c.list {
			m.Watchers = append(m.Watchers, r.index(n))
		}
		r.frame(l, m)
		r.take()
		r.silence("b")
		if !c.answers {
			r.silence(c.list...)
		}
		r.step(Input{Kind: Failed, Link: l})
		if r.pass(r.cfg.Confirm); !c.answers { // those that it asks may be dead, too
			r.pass(r.cfg.Grace)
		}
		for _, name := range []string{"m", "n"} {
			if reported := r.logged("to " + name + ": update suspects:a,b,1.1"); reported != c.want {
				t.Errorf("%s: %s is notified: %v, want %v", c.what, name, reported, c.want)
			}
		}
		if r.Has(r.index("b")) {
			t.Errorf("%s: b is in the view", c.what)
		}
	}
}

// TestLeaveGoesToAllNeighboursWithExitCode (10), and to the monitors.
func TestLeaveGoesToAllNeighboursWithExitCode(t *testing.T) {
	r := newRig(t, nil)
	b, c := r.accept("b", gossip.Ring), r.accept("c", gossip.Random)
	r.join("m")
	r.step(Input{Kind: SetMonitors, Nodes: []Index{r.index("m")}})
	r.take()
	r.step(Input{Kind: Depart, Exit: gossip.Exit{Given: true, Code: 42}})
	log := r.take()
	for _, want := range []string{"link 1: update left:a,5.1,42", "link 3: update left:a,5.1,42", "to m: update left:a,5.1,42", "close 1", "close 3", "stopped"} {
		if !slices.Contains(log, want) {
			t.Errorf("%q is missing of %q (links %d, %d)", want, log, b, c)
		}
	}
	if !r.stopped || r.Deadline() != 1<<63-1 {
		t.Errorf("stopped %v, deadline %v", r.stopped, r.Deadline())
	}
	r.step(Input{Kind: Received, Link: b, Message: &Message{Type: gossip.Update, Alives: []Entry{r.entry("z", 1, 1)}}})
	r.want("after that", "stopped")
}

// TestLeaveGoesToWhoDials: who is no neighbour yet, but is being dialled or will
// dial, hears of the leave before it finds nobody.
func TestLeaveGoesToWhoDials(t *testing.T) {
	for _, dials := range []bool{false, true} {
		r := newRig(t, nil)
		r.join("b", "c", "d")
		if dials {
			r.pass(r.cfg.Tau)
		}
		reported := r.before(r.cfg.Ks)
		for i := range r.links {
			reported = append(reported, r.links[i].peer)
		}
		if got := len(r.links) > 0; len(reported) == 0 || got != dials {
			t.Fatalf("links %v, reported %v", r.links, reported)
		}
		r.take()
		r.step(Input{Kind: Depart})
		log := r.take()
		for _, i := range reported {
			if want := fmt.Sprintf("to %s: update left:a,5.1,-", r.name(i)); !slices.Contains(log, want) {
				t.Errorf("%q is missing of %q", want, log)
			}
		}
	}
}

// TestLeaveGoesToWhoMayDial: the predecessor may be dead, and then the one before it
// dials.
func TestLeaveGoesToWhoMayDial(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Theta, c.Ks = 1, 1 })
	r.join("b", "c", "d")
	r.take()
	r.step(Input{Kind: Depart})
	log := r.take()
	for _, name := range []string{"b", "c", "d"} {
		if want := fmt.Sprintf("to %s: update left:a,5.1,-", name); !slices.Contains(log, want) {
			t.Errorf("%q is missing of %q", want, log)
		}
	}
}

// TestNewNeighbourGetsAllThenDifferences (11): the whole view with all
// suspicions first, and then only what is new.
func TestNewNeighbourGetsAllThenDifferences(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Theta, c.Ks = 2, 2 })
	r.join("b", "c", "d", "e")
	r.inform(Message{Suspicions: []Suspicion{suspicion(r, "c", "e", ver(1, 1))}})
	r.pass(r.cfg.Tau - time.Millisecond)
	r.take()
	r.accept("b", gossip.Ring)
	if want := "link 1: base alive:a,5.1 alive:b,1.1 alive:c,1.1 alive:d,1.1 alive:e,1.1 suspects:c,e,1.1"; !slices.Contains(r.log, want) {
		t.Errorf("sent %q, want %q among it", r.log, want)
	}
	r.pass(time.Second)
	r.take()
	r.join("f")
	r.pass(r.cfg.Tau)
	if !slices.Contains(r.log, "link 1: update alive:f,1.1") {
		t.Errorf("sent %q, want f alone", r.log)
	}
}

// TestUpdateGoesTauAfterItsFirstEvent (11): to all neighbours, once, and then the
// set is empty.
func TestUpdateGoesTauAfterItsFirstEvent(t *testing.T) {
	r := newRig(t, nil)
	r.accept("b", gossip.Ring)
	r.accept("c", gossip.Ring)
	r.pass(time.Second)
	r.take()
	r.join("d")
	r.pass(r.cfg.Tau * 3 / 4)
	r.join("e")
	if r.logged("update") {
		t.Fatalf("sent before Tau: %q", r.log)
	}
	r.pass(r.cfg.Tau / 4)
	for _, want := range []string{"link 1: update alive:d,1.1 alive:e,1.1", "link 3: update alive:d,1.1 alive:e,1.1"} {
		if !slices.Contains(r.log, want) {
			t.Errorf("%q is missing of %q", want, r.log)
		}
	}
	r.take()
	r.pass(time.Second)
	if r.logged("update") {
		t.Errorf("sent again: %q", r.log)
	}
	r.inform(Message{Alives: []Entry{r.entry("d", 1, 2)}})
	r.pass(r.cfg.Tau)
	if !slices.Contains(r.log, "link 3: update alive:d,1.2") {
		t.Errorf("news of the same node are not sent: %q", r.log)
	}
}

// TestDisputeEndsWithTheTruth: of whom a neighbour holds dead and the core
// alive, who answers raises its minor, and who does not is suspected. Nobody is
// taken out on the neighbour's word.
func TestDisputeEndsWithTheTruth(t *testing.T) {
	r := newRig(t, nil)
	l := r.accept("b", gossip.Ring)
	r.join("c", "d")
	r.silence("d")
	r.take()
	r.frame(l, Message{Type: gossip.Dispute, Alives: []Entry{r.entry("c", 1, 1), r.entry("d", 1, 1), r.entry("a", 5, 1)}})
	if !r.Has(r.index("c")) || !r.Has(r.index("d")) || r.Self().Version != ver(5, 2) {
		t.Fatalf("at once: %q, own version %v", r.log, r.Self().Version)
	}
	r.pass(2*r.cfg.Tau + r.cfg.Grace)
	if !r.Has(r.index("c")) || r.Has(r.index("d")) {
		t.Errorf("c, which answers, in the view: %v; d, which does not: %v", r.Has(r.index("c")), r.Has(r.index("d")))
	}
	r.inform(Message{Leaves: []Departure{{Node: r.index("c"), Version: ver(1, 3)}}})
	r.take()
	r.frame(l, Message{Type: gossip.Base, Alives: []Entry{r.entry("b", 1, 1), r.entry("c", 1, 2)}})
	if !slices.Contains(r.log, "link 1: dispute dead:c,1.3") {
		t.Errorf("a base with who is dead: %q", r.log)
	}
}

// TestCrossedDials: of two nodes that dial each other one link stands, the same
// at both.
func TestCrossedDials(t *testing.T) {
	for _, peer := range []string{"b", "c", "d", "e"} {
		r := newRig(t, nil)
		r.join(peer)
		r.pass(r.cfg.Tau)
		r.step(Input{Kind: Connected, Link: 2})
		r.take()
		r.accept(peer, gossip.Ring)
		lower := r.key < idOf(peer).Key()
		if refused := r.logged("refuse crossed"); refused != lower {
			t.Errorf("%s: refused %v, want %v: the dial of the lower key stands", peer, refused, lower)
		}
		if stands := r.logged("neighbour " + peer + " up"); stands == lower {
			t.Errorf("%s: accepted link stands: %v", peer, stands)
		}
		if given := r.logged("link 2: goodbye"); given == lower {
			t.Errorf("%s: goodbye on our dial: %v; it may stand at the other end", peer, given)
		}
		if len(r.links) != 1 {
			t.Errorf("%s: %d links, want one", peer, len(r.links))
		}
	}
}

// beat gives the core the next heartbeat of a neighbour whose fingerprint is f.
func (r *rig) beat(l *link, f uint64) {
	n := l.seen + 1
	r.step(Input{Kind: Beat, Pulse: gossip.Pulse{Tag: l.tag, Sequence: n, Turns: 4, View: quarter(f, n)}})
}

// TestViewsThatDifferAreExchanged: at the second heartbeat that reports another
// view, while ours does not change nor four in a row agree, and no sooner.
func TestViewsThatDifferAreExchanged(t *testing.T) {
	r := newRig(t, nil)
	r.accept("b", 0)
	r.pass(time.Second)
	heartbeats := func(what string, differ ...bool) {
		t.Helper()
		for _, d := range differ {
			f := r.Digest()
			if d {
				f = ^f
			}
			r.take()
			r.beat(&r.links[0], f)
		}
		if got, want := r.logged("base answer"), !strings.HasPrefix(what, "no"); got != want {
			t.Errorf("%s: exchanged %v", what, got)
		}
	}
	heartbeats("not where they agree", false, false)
	heartbeats("not at the first that differs", true)
	heartbeats("at the second", true)
	heartbeats("not again at once", true)
	heartbeats("but at the next", true)
	heartbeats("not where it was once", true, false, false, false, false)
	heartbeats("nor after that", true)
	r.join("z")
	heartbeats("nor when ours has changed since", true)
	heartbeats("three agree between", false, false, false, true)
}

// TestViewsWhoseDigestsCollide: two views that differ, with digests of which all
// quarters but one are equal, are exchanged nevertheless.
func TestViewsWhoseDigestsCollide(t *testing.T) {
	for q := range uint32(quarters) {
		r := newRig(t, nil)
		r.accept("b", 0)
		r.pass(time.Second)
		r.take()
		other := r.Digest() ^ 1<<(16*q+5)
		for range 2 * quarters {
			r.beat(&r.links[0], other)
		}
		if !r.logged("base answer") {
			t.Errorf("views that differ in quarter %d are never exchanged", q)
		}
	}
	// Two views of which the first heartbeat carries the same 16 bits.
	r, minor := newRig(t, nil), map[uint16]uint32{}
	digest := func(n uint32) uint64 {
		return uint64(gossip.Key(r.dir.Key(r.index("c")).Life(1)).Life(uint64(n)))
	}
	n := uint32(1)
	for ; minor[uint16(digest(n))] == 0; n++ {
		minor[uint16(digest(n))] = n
	}
	r.accept("b", 0)
	r.inform(Message{Alives: []Entry{r.entry("c", 1, minor[uint16(digest(n))])}})
	other := r.Digest() ^ digest(minor[uint16(digest(n))]) ^ digest(n)
	if uint16(other) != uint16(r.Digest()) || other == r.Digest() {
		t.Fatalf("digests %x and %x do not collide", r.Digest(), other)
	}
	r.pass(time.Second)
	r.take()
	for range quarters {
		r.beat(&r.links[0], other)
	}
	if !r.logged("base answer") {
		t.Error("views whose digests have 16 equal bits are never exchanged")
	}
}

// TestSuspicionsThatDifferAreExchanged (9): where two reporters are wanted, equal
// views with different suspicions would not convict the same.
func TestSuspicionsThatDifferAreExchanged(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Theta, c.Ks = 2, 2 })
	r.join("b", "c", "d")
	r.accept("b", 0)
	same := r.fingerprint()
	r.inform(Message{Suspicions: []Suspicion{suspicion(r, "c", "d", ver(1, 1))}})
	r.take()
	for range 2 {
		r.beat(&r.links[0], same)
	}
	if !slices.ContainsFunc(r.log, func(line string) bool {
		return strings.Contains(line, "base answer") && strings.Contains(line, "suspects:c,d,1.1")
	}) {
		t.Errorf("sent: %q", r.log)
	}
}

// TestDisputeOfTheSuspected (9): who is suspected by too few, and held for dead by
// a neighbour, is probed once more, and removed if it does not answer. So the
// views become equal also where other reporters are gone.
func TestDisputeOfTheSuspected(t *testing.T) {
	for _, dead := range []bool{true, false} {
		r := newRig(t, func(c *Config) { c.Theta, c.Ks = 3, 3 })
		l := r.accept("b", gossip.Ring)
		r.join("c", "d", "e", "f")
		r.inform(Message{Suspicions: []Suspicion{{r.key, r.index("d"), ver(1, 1), nil}}})
		if dead {
			r.silence("d")
		}
		r.frame(l, Message{Type: gossip.Dispute, Alives: []Entry{r.entry("d", 1, 1)}})
		r.pass(2*r.cfg.Tau + r.cfg.Grace)
		if r.Has(r.index("d")) == dead || len(r.Suspicions()) > 0 {
			t.Errorf("dead %v: in the view %v, suspicions %+v", dead, r.Has(r.index("d")), r.Suspicions())
		}
	}
}

// TestOldAnswerDoesNotEndADispute: an answer by who does not know yet that it is
// held for dead.
func TestOldAnswerDoesNotEndADispute(t *testing.T) {
	r := newRig(t, nil)
	l := r.accept("b", gossip.Ring)
	r.join("d")
	r.silence("d")
	r.frame(l, Message{Type: gossip.Dispute, Alives: []Entry{r.entry("d", 1, 1)}})
	echo := func(v Version) {
		r.step(Input{Kind: Datagram, Message: &Message{Type: gossip.Echo, From: Entry{r.index("d"), v, nil}, Nonce: r.suspected[0].nonce}})
	}
	if echo(ver(1, 1)); r.probing(r.index("d")) == nil {
		t.Fatal("the dispute has ended, and the views still differ")
	}
	if echo(ver(1, 2)); r.probing(r.index("d")) != nil || !r.Has(r.index("d")) {
		t.Error("a newer version does not end it")
	}
}

// TestDisputeOfTheProbed (9): who is about to be given up when a neighbour reports
// that it holds it for dead is asked about that at once, and has time to answer.
func TestDisputeOfTheProbed(t *testing.T) {
	r := newRig(t, nil)
	l := r.accept("b", gossip.Ring)
	r.join("d")
	r.silence("d")
	d := r.index("d")
	r.now, r.Core.out = r.at, &r.out
	r.startProbing(suspect{node: d, cause: silent})
	r.pass(r.cfg.Grace - time.Millisecond)
	r.frame(l, Message{Type: gossip.Dispute, Alives: []Entry{r.entry("d", 1, 1)}})
	r.pass(2 * time.Millisecond)
	if !r.Has(d) || !r.logged("to d: probe") {
		t.Fatalf("in the view %v; sent %q", r.Has(d), r.log)
	}
	r.step(Input{Kind: Datagram, Message: &Message{Type: gossip.Echo, From: r.entry("d", 1, 2), Nonce: r.probing(d).nonce}})
	if r.pass(r.cfg.Confirm); !r.Has(d) || r.probing(d) != nil {
		t.Errorf("it has answered: in the view %v", r.Has(d))
	}
}

// TestNextSuccessorIsLookedAfter (5, 9): where a suspect stays in the view for
// want of reporters, its place among the successors is another's at once.
func TestNextSuccessorIsLookedAfter(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Theta, c.Ks, c.Kr = 2, 2, 1 })
	names := strings.Split("bcdefghijklmnop", "")
	r.join(names...)
	r.pass(r.cfg.Tau)
	was := r.successors()
	r.silence(r.name(was[0]))
	r.step(Input{Kind: ConnectFailed, Link: r.linkTo(was[0]).number})
	r.pass(r.cfg.Confirm)
	if next := r.successors(); !r.Has(was[0]) || slices.Contains(next, was[0]) || r.linkTo(next[1]) == nil {
		t.Errorf("successors %v, then %v; the suspect in the view: %v", was, next, r.Has(was[0]))
	}
}

// TestLateHelloOfACrossedDial: the Hello of a dial that its own end has given up
// already, since it took ours, does not take the place of the link that stands.
// Long after, it is that of a node that has lost the link.
func TestLateHelloOfACrossedDial(t *testing.T) {
	for _, peer := range []string{"b", "c", "d", "e"} {
		r := newRig(t, nil)
		r.join(peer)
		r.pass(r.cfg.Tau)
		r.step(Input{Kind: Connected, Link: 2})
		r.frame(2, Message{Type: gossip.Welcome, From: r.entry(peer, 1, 1), Tag: 7})
		r.take()
		r.accept(peer, gossip.Ring)
		if lower := r.key < idOf(peer).Key(); lower != r.logged("refuse crossed") || lower == r.logged("neighbour "+peer+" down") {
			t.Errorf("%s, our dial stands %v: %q", peer, lower, r.log)
		}
		r.pass(3 * r.cfg.Connect)
		r.take()
		r.accept(peer, gossip.Ring)
		if !r.logged("neighbour "+peer+" down") || !r.logged("goodbye") || !r.logged("neighbour "+peer+" up") {
			t.Errorf("%s: later it is not taken: %q", peer, r.log)
		}
	}
}

// TestSlowCoreGivesTime: who is stepped late waits longer for an answer, also of
// who has closed a connection.
func TestSlowCoreGivesTime(t *testing.T) {
	r := newRig(t, nil)
	r.accept("b", 0)
	r.pass(time.Second)
	r.at = r.Deadline().Add(20 * time.Millisecond)
	r.step()
	r.silence("b")
	r.step(Input{Kind: Failed, Link: 1})
	if d := r.probing(r.index("b")); d == nil || d.end.Sub(r.at) != 80*time.Millisecond {
		t.Errorf("suspect %+v, want one of 80 ms", d)
	}
	r.pass(2 * time.Second)
	r.join("b")
	r.inform(Message{Alives: []Entry{r.entry("b", 1, 2)}})
	l := r.accept("b", 0)
	r.step(Input{Kind: Failed, Link: l})
	if d := r.probing(r.index("b")); d == nil || d.end.Sub(r.at) > 2*r.cfg.Confirm {
		t.Errorf("later: suspect %+v, want one of 20 ms", d)
	}
}

// TestDeputiesKnowWhoWatches (12): a deputy learns when one before it is no
// neighbour any more, since it may live on, answer probes, and report nothing.
func TestDeputiesKnowWhoWatches(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Kr = 1 })
	for _, n := range []string{"b", "c", "d", "e"} {
		r.accept(n, gossip.Ring)
	}
	r.pass(time.Second)
	watcher, deputy := r.linkTo(r.beats.watchers[0]), r.linkTo(r.beats.deputies[1]).number
	r.take()
	r.frame(watcher.number, Message{Type: gossip.Goodbye})
	r.pass(time.Second)
	if !r.logged(fmt.Sprintf("link %d: watchers", deputy)) {
		t.Errorf("it is not reported: %q", r.log)
	}
}

// TestWhoAnswersIsNotProbedAgain: a successor whose link broke, but who answers,
// is dialled at once and not probed again. If it were, its refusal of the dial
// (its own is under way) and its answer would have it dialled without end.
func TestWhoAnswersIsNotProbedAgain(t *testing.T) {
	r := newRig(t, nil)
	r.pass(time.Second)
	l := r.accept("b", gossip.Ring|gossip.Random)
	r.silence("b")
	r.hung = true
	r.pass(time.Second)
	r.take()
	r.step(Input{Kind: Failed, Link: l})
	var nonce uint32
	for _, m := range r.last {
		if m.Type == gossip.Probe {
			nonce = m.Nonce
		}
	}
	r.take()
	r.step(Input{Kind: Datagram, Message: &Message{Type: gossip.Echo, From: r.entry("b", 1, 1), Nonce: nonce}})
	r.want("b answers", "dial b", "close 2")
	dial := r.nextLink - 2
	r.step(Input{Kind: Connected, Link: dial})
	r.frame(dial, Message{Type: gossip.Refuse, From: r.entry("b", 1, 1), Reason: gossip.Crossed, About: r.entry("b", 1, 1)})
	if r.logged("dial b") {
		t.Errorf("who refuses is dialled again in no time: %q", r.take())
	}
	r.pass(time.Second)
	if !r.logged("dial b") {
		t.Errorf("who refuses is not dialled again: %q", r.take())
	}
}
