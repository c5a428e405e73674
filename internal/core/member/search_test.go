package member

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// searching has a node that asks, with b in its bootstrap set.
func searching(t *testing.T, change func(*Config)) *rig {
	return newRig(t, func(c *Config) {
		c.Discovery = DefaultSettings().Discovery
		c.Bootstrap = []gossip.ID{idOf("b")}
		if change != nil {
			change(c)
		}
	})
}

// TestDiscoveryAsksTheBootstrapSet (4): with the boot flag, its ID and version,
// until the set is in the view. Who answers is dialled for its view.
func TestDiscoveryAsksTheBootstrapSet(t *testing.T) {
	r := searching(t, nil)
	r.pass(0)
	r.want("at the start", "to b: discovery-request from a 5.1 boot")
	r.step(Input{Kind: Datagram, Message: &Message{
		Type: gossip.DiscoveryReply, From: r.entry("b", 1, 1), Nonce: r.search.sent[0].nonce, Boot: true, Size: 2,
	}})
	r.want("the reply", "join b 1.1", "dial b")
	if v := r.Self().Version; v != ver(5, 1) {
		t.Errorf("a reply with the boot flag raises the minor: %v", v)
	}
	r.pass(time.Hour / 2)
	if r.logged("discovery") {
		t.Errorf("it goes on: %q", r.log)
	}
}

// TestDiscoveryRequestRaisesMinorFirst (4, trap): without the boot flag, before
// the reply is written.
func TestDiscoveryRequestRaisesMinorFirst(t *testing.T) {
	r := newRig(t, nil)
	nonce := uint32(0)
	ask := func(boot bool, from Entry) {
		nonce++
		r.step(Input{Kind: Datagram, Message: &Message{Type: gossip.DiscoveryRequest, From: from, Nonce: nonce, Boot: boot}})
	}
	ask(true, r.entry("b", 1, 1))
	r.want("with the flag", "to b: probe", "to b: discovery-reply from a 5.1 boot size=1", "join b 1.1")
	ask(false, r.entry("c", 1, 1))
	r.want("without", "to c: probe", "to c: discovery-reply from a 5.2 size=2", "join c 1.1")
	r.inform(Message{Leaves: []Departure{{Node: r.index("c"), Version: ver(1, 1)}}})
	r.take()
	ask(true, r.entry("c", 1, 1))
	r.want("of who is dead: it is reported so", "to c: probe", "to c: discovery-reply from a 5.2 1.1 boot size=2", "join c 1.2")
}

// TestDiscoveryReplyRaisesMinorFirst (4, trap): once for all copies of a reply
// without the boot flag.
func TestDiscoveryReplyRaisesMinorFirst(t *testing.T) {
	r := newRig(t, nil)
	first, second := r.expect(r.index("b")), r.expect(r.index("b"))
	for range 3 {
		r.step(Input{Kind: Datagram, Message: &Message{Type: gossip.DiscoveryReply, From: r.entry("b", 1, 2), Nonce: first}})
	}
	if v := r.Self().Version; v != ver(5, 2) {
		t.Errorf("its version is %v, want 5.2", v)
	}
	r.step(Input{Kind: Datagram, Message: &Message{Type: gossip.DiscoveryReply, From: r.entry("b", 1, 2), Nonce: second, About: Entry{Node: Nobody, Version: ver(5, 8)}}})
	if v := r.Self().Version; v != ver(5, 9) {
		t.Errorf("its version is %v, want 5.9: others hold it dead at 5.8", v)
	}
}

// TestDiscoveryRateFalls (4): the pauses grow with the time since the start, and
// begin anew when somebody is lost, who is asked without the boot flag.
func TestDiscoveryRateFalls(t *testing.T) {
	r := searching(t, nil)
	count := func(d time.Duration) (n int) {
		r.take()
		r.pass(d)
		for _, m := range r.last {
			if m.Type == gossip.DiscoveryRequest {
				n++
			}
		}
		return n
	}
	first, second, later := count(time.Second), count(time.Second), 0
	for range 10 {
		later += count(time.Second)
	}
	if first < 5 || second > first || later > 4*first {
		t.Errorf("requests: %d in the first second, %d in the second, %d in the ten after", first, second, later)
	}
	count(time.Hour)
	hour := count(10 * time.Minute)
	if most := 4 * int(10*time.Minute/r.cfg.Discovery.Last); hour == 0 || hour > most {
		t.Errorf("after an hour %d in ten minutes, want 1 to %d", hour, most)
	}
	r.join("c")
	r.inform(Message{Leaves: []Departure{{Node: r.index("c"), Version: ver(1, 1)}}})
	if n := count(time.Second); n < 3 || !r.logged("to c: discovery-request from a 5.1") {
		t.Errorf("%d requests in the second after a loss, %q", n, r.log)
	}
}

// TestLeaveGoesToWhoWasAsked: a node that leaves before it was answered is known to who
// was asked, who would take its end for a failure.
func TestLeaveGoesToWhoWasAsked(t *testing.T) {
	r := searching(t, nil)
	r.pass(time.Second) // it asks again and again
	r.take()
	r.step(Input{Kind: Depart, Exit: gossip.Exit{Given: true, Code: 42}})
	r.want("the leave", "to b: update left:a,5.1,42", "stopped")
}

// TestDiscoveryOfAnAddress (4): of a bootstrap set without names, each entry is
// whoever answers there.
func TestDiscoveryOfAnAddress(t *testing.T) {
	at := func(id string) func(*Config) {
		return func(c *Config) { c.Bootstrap = []gossip.ID{gossip.ID(id)} }
	}
	r := searching(t, at("@10.0.0.98:7946"))
	r.pass(0)
	if !r.logged("to : discovery-request from a 5.1 boot") {
		t.Fatalf("asked: %q", r.log)
	}
	r.step(Input{Kind: Datagram, Message: &Message{Type: gossip.DiscoveryReply, From: r.entry("b", 1, 1), Nonce: r.search.sent[0].nonce, Boot: true}})
	if len(r.bootstrap) != 1 || r.bootstrap[0] != r.index("b") {
		t.Errorf("the bootstrap set is %v, want b", r.bootstrap)
	}
	r = searching(t, at("@10.0.0.97:7946")) // its own
	r.pass(0)
	r.step(Input{Kind: Datagram, Message: &Message{Type: gossip.DiscoveryRequest, From: Entry{r.self, r.version, nil}, Nonce: r.search.sent[0].nonce, Boot: true}})
	if len(r.bootstrap) != 0 {
		t.Errorf("the bootstrap set is %v, want none: it was the node itself", r.bootstrap)
	}
}

// TestStealth (server collectives, 42): a node that starts is silent for a number
// of cycles that grows with the log of the group's size, and reads meanwhile; it
// ends early on news that others hold it for dead.
func TestStealth(t *testing.T) {
	stealthy := func() *rig { return searching(t, func(c *Config) { c.Stealth = 2 }) }
	emerged := func(r *rig) time.Duration {
		for r.hiding() && r.at < core.Time(time.Minute) {
			r.pass(10 * time.Millisecond)
		}
		return r.at.Sub(0)
	}
	overhear := func(r *rig, m Message) {
		m.Type, m.From, m.Boot, m.Nonce = gossip.DiscoveryReply, r.entry("b", 1, 1), true, r.search.sent[0].nonce
		r.step(Input{Kind: Datagram, Message: &m})
	}
	r := stealthy()
	r.pass(0)
	r.want("at the start", "to b: discovery-request from a 5.1 boot stealth")
	r.step(Input{Kind: Datagram, Message: &Message{Type: gossip.Probe, From: r.entry("c", 1, 1)}})
	r.step(Input{Kind: Datagram, Message: &Message{Type: gossip.DiscoveryRequest, From: r.entry("c", 1, 1)}})
	r.want("who asks")
	r.accept("b", gossip.Ring)
	if r.logged("welcome") {
		t.Error("it greets")
	}
	small := emerged(r)

	r = stealthy()
	r.pass(0)
	overhear(r, Message{Size: 26})
	if large := emerged(r); large <= small || large > 2*5*r.cfg.Tau+10*time.Millisecond {
		t.Errorf("silent for %v in a group of two, %v in one of 26", small, large)
	}
	r = stealthy()
	r.pass(0)
	overhear(r, Message{Size: 1 << 31})
	if most := emerged(r); most > 2*mostCycles*r.cfg.Tau+10*time.Millisecond {
		t.Errorf("a liar has it be silent for %v", most)
	}

	r = stealthy()
	r.pass(0)
	overhear(r, Message{Size: 26, About: Entry{Node: Nobody, Version: ver(4, 1)}})
	r.pass(time.Millisecond)
	if r.hiding() {
		t.Error("others hold its former life dead, and it is still silent")
	}
	if r.step(); !r.logged("discovery-request from a 5.1 boot") {
		t.Errorf("then it asks: %q", r.log)
	}
}

// TestOversleptCoreSuspectsNobody: who was not stepped for long gives everybody
// time, and is not well for a while.
func TestOversleptCoreSuspectsNobody(t *testing.T) {
	r := newRig(t, nil)
	l := r.accept("b", 0)
	r.frame(l, Message{Type: gossip.Watchers, Watchers: []Index{r.self}})
	r.pass(r.cfg.beat() / 2)
	r.silence("b")
	r.at = r.at.Add(time.Minute) // stopped, as by a debugger
	r.step()
	if r.logged("to b: probe") {
		t.Error("probed for what it has slept through")
	}
	r.pass(r.cfg.Grace)
	if !r.Has(r.index("b")) {
		t.Fatal("suspected for what it has slept through")
	}
	if r.Health() == 0 {
		t.Error("it takes itself for well")
	}
	r.pass(10 * time.Second)
	if r.Has(r.index("b")) || r.Health() > 1 {
		t.Errorf("later: in the view %v, health %d", r.Has(r.index("b")), r.Health())
	}
}

// TestRepeatedDiscovery: an answer that nobody asked for, or asked for long ago,
// changes nothing; a copy of a request is not answered, and raises no minor.
func TestRepeatedDiscovery(t *testing.T) {
	r := newRig(t, nil)
	reply := Message{Type: gossip.DiscoveryReply, From: r.entry("b", 1, 1), Nonce: 77}
	r.step(Input{Kind: Datagram, Message: &reply})
	reply.Nonce = r.expect(r.index("b"))
	r.at = r.at.Add(answerable)
	r.step(Input{Kind: Datagram, Message: &reply})
	if r.Size() != 1 || r.Self().Version != ver(5, 1) {
		t.Fatalf("view of %d, own version %v", r.Size(), r.Self().Version)
	}
	r.take()
	for range 2 {
		r.step(Input{Kind: Datagram, Message: &Message{Type: gossip.DiscoveryRequest, From: r.entry("c", 1, 1), Nonce: 3}})
	}
	replies := slices.DeleteFunc(r.last, func(m Message) bool { return m.Type != gossip.DiscoveryReply })
	if len(replies) != 1 || r.Self().Version != ver(5, 2) {
		t.Errorf("a request and its copy: %d answers, own version %v", len(replies), r.Self().Version)
	}
}

// TestForgottenNodeIsNotRevived (3): once the history has forgotten who is dead,
// no copy of a datagram of its life brings it back; its own answer does.
func TestForgottenNodeIsNotRevived(t *testing.T) {
	r := newRig(t, func(c *Config) { c.History, c.Remember = 0, 0 })
	r.join("b", "c")
	for _, n := range []string{"b", "c"} {
		r.pass(time.Second)
		r.inform(Message{Leaves: []Departure{{Node: r.index(n), Version: ver(1, 1)}}})
	}
	b := r.index("b")
	if r.view.nodes[b].state != unknown {
		t.Fatal("b is not forgotten")
	}
	r.silence("b")
	request := Message{Type: gossip.DiscoveryRequest, From: r.entry("b", 1, 1), Nonce: 7, Boot: true}
	for _, m := range []Message{
		{Type: gossip.Echo, From: r.entry("b", 1, 1), Nonce: 7},
		{Type: gossip.Update, Alives: []Entry{r.entry("b", 1, 1)}},
		{Type: gossip.Update, Leaves: []Departure{{Node: b, Version: ver(1, 1)}}, Suspicions: []Suspicion{suspicion(r, "c", "b", ver(1, 1))}},
		{Type: gossip.Probe, From: r.entry("b", 1, 1), Target: r.key},
		{Type: gossip.Relay, From: r.entry("b", 1, 1), About: r.entry("b", 1, 1)},
		{Type: gossip.DiscoveryReply, From: r.entry("b", 1, 1), Nonce: 7},
		request,
	} {
		r.step(Input{Kind: Datagram, Message: &m})
		r.pass(r.cfg.Grace)
		if r.Has(b) {
			t.Fatalf("a copy of a %v brings it back", m.Type)
		}
	}
	if len(r.relays) != 0 {
		t.Errorf("%d probes of those who have asked are remembered", len(r.relays))
	}
	r.mute[b], request.Nonce = false, 8
	r.step(Input{Kind: Datagram, Message: &request})
	if !r.Has(b) {
		t.Error("it has asked and answers, and is not in the view")
	}
}

// TestCallersAreBounded: who asks for discovery is answered however many do, and
// no more than so many are called back.
func TestCallersAreBounded(t *testing.T) {
	r := newRig(t, nil)
	for i := range maxCallers + 100 {
		id := gossip.ID(fmt.Sprintf("n%d@10.1.0.1:7946", i))
		n := r.dir.Add(id)
		r.mute[n] = true
		r.step(Input{Kind: Datagram, Message: &Message{Type: gossip.DiscoveryRequest, From: Entry{n, ver(1, 1), nil}, Nonce: uint32(i), Boot: true}})
	}
	if r.callers() != maxCallers {
		t.Errorf("%d are called back, want %d", r.callers(), maxCallers)
	}
	r.take()
	r.silence("c")
	r.join("b")
	r.step(Input{Kind: Datagram, Message: &Message{Type: gossip.Relay, From: r.entry("b", 1, 1), About: r.entry("c", 1, 1), Nonce: 1}})
	if !r.logged("to c: probe") {
		t.Error("nobody is probed for others meanwhile")
	}
	if r.pass(r.cfg.Grace); len(r.relays) != 0 {
		t.Errorf("%d are remembered afterwards", len(r.relays))
	}
}

// TestBelow: numbers are spread over all of a range that is larger than 32 bits.
func TestBelow(t *testing.T) {
	r := core.Chance(1)
	for _, n := range []int{1, 3, 1 << 20, 1 << 37, 122_880_000_000} {
		sum, most := 0.0, 0
		for range 10_000 {
			x := r.Below(n)
			if x < 0 || x >= n {
				t.Fatalf("below(%d) is %d", n, x)
			}
			sum, most = sum+float64(x), max(most, x)
		}
		if mean := sum / 10_000; n > 10 && (mean < 0.48*float64(n) || mean > 0.52*float64(n) || most < n/100*99) {
			t.Errorf("below(%d) has the mean %.3g and goes up to %d", n, mean, most)
		}
	}
}
