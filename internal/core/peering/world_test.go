package peering

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

// fataler is what reports a broken invariant.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// check holds c to what is always true of it.
func (c *Core) check(t fataler) {
	t.Helper()
	sources, taken := map[string]int{}, 0
	for _, s := range c.strangers.all {
		sources[s.source.String()]++
	}
	for source, n := range c.strangers.of {
		if sources[source.String()] != n || n == 0 || n > c.cfg.PendingOfSource {
			t.Fatalf("source %v has %d, counted are %d", source, sources[source.String()], n)
		}
	}
	if len(c.strangers.all) > c.cfg.Pending || c.taken > c.cfg.Connections {
		t.Fatalf("%d are pending; %d connections, %d of them taken", len(c.strangers.all), len(c.conns), c.taken)
	}
	checks := 0
	for id, k := range c.conns {
		if k.id != id || c.peers[k.peer.name] != k.peer || !slices.Contains(k.peer.conns, k) {
			t.Fatalf("connection %v is not where it should be", k.id)
		}
		if !k.dialled() {
			taken++
		}
		if k.check.Running() {
			checks++
		}
		if hasEnd := k.state == dialling || k.state == draining || k.state == up && c.isShared(k); k.check.Running() != hasEnd {
			t.Fatalf("connection %v in state %v is looked at again: %v", k.id, k.state, !hasEnd)
		}
	}
	if checks != len(c.checks) || c.Deadline() <= c.now || len(c.eased) > 0 {
		t.Fatalf("%d of %d timers are those of connections; due at %v, it is %v", checks, len(c.checks), c.Deadline(), c.now)
	}
	of, members := 0, map[string][4]int{}
	for _, p := range c.peers {
		n := members[HostOf(p.name)]
		if p.unused != nil {
			n[3]++
		}
		members[HostOf(p.name)] = [4]int{n[0] + 1, n[1] + len(p.claims), n[2] + p.taken(), n[3]}
	}
	for i, s := range c.shares {
		n := 0
		for _, m := range s.exclusive {
			n += m
		}
		if s.place != i || c.shareOf[s.host] != s || members[s.host] != [4]int{s.peers, s.claims, s.taken.Len(), s.unused} || n > s.taken.Len() || s.taken.Len() > c.shares[0].taken.Len() {
			t.Fatalf("the share of %s is %+v at %d, want %v", s.host, s, i, members[s.host])
		}
		of += s.taken.Len()
	}
	if taken != c.taken || of != taken || len(c.shares) != len(members) || len(c.shareOf) != len(members) {
		t.Fatalf("%d connections were taken, counted are %d and %d of %d hosts", taken, c.taken, of, len(c.shares))
	}
	for name, p := range c.peers {
		held := 0
		for i := range p.channels {
			l := &p.channels[i]
			held += l.holds
			if l.conn != nil && (l.conn.state != up || l.dial != nil) || l.dial != nil && l.dial.state != dialling && l.dial.state != claiming ||
				l.waits != nil && (l.dial == nil || l.waits.state != waiting) {
				t.Fatalf("the channel %s/%d is in no state that can be: %+v", name, i, l)
			}
			if l.holds > 0 && l.conn == nil && l.dial == nil && !(l.redial.Running() && l.redial.At == l.retry) && !c.isClosing {
				t.Fatalf("the channel %s/%d is held, and nobody dials", name, i)
			}
			ups := 0
			for _, k := range p.conns {
				if k.class == l.class && k.state == up {
					ups++
				}
			}
			if i < int(c.cfg.Shared) && ups > 1 {
				t.Fatalf("%d connections of %s/%d are used", ups, name, i)
			}
		}
		if unused := len(p.conns) == 0 && held == 0; unused != (p.unused != nil) || p.age.Running() != (unused && !c.cfg.Certified && !p.isLearned) {
			t.Fatalf("%s has %d connections, is held %d times, and is unused: %v", name, len(p.conns), held, p.unused != nil)
		}
		if p.probe.Running() != (len(p.claims) > 0) {
			t.Fatalf("%s has %d claims, and is probed: %v", name, len(p.claims), p.probe.Running())
		}
	}
}

// taken counts the connections that a peer has made.
func (p *peer) taken() (n int) {
	for _, k := range p.conns {
		if !k.dialled() {
			n++
		}
	}
	return n
}

// wire is a connection between the two hosts of a world.
type wire struct {
	dialler  int
	ids      [2]ID      // at each host
	inFlight [2][]Input // to each host, in order
	isUp     [2]bool    // the host has used it
	reads    [2]uint64  // signs of life that each host has had
	broken   bool
}

// world is two hosts, and a network that delays, and breaks connections.
type world struct {
	t     *rapid.T
	hosts [2]*trial
	wires []*wire
	next  ID
	calm  bool // nothing breaks any more
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t}
	for i := range w.hosts {
		w.hosts[i] = newTrial(func(c *Config) { c.Name = nameOf(i) })
	}
	return w
}

func nameOf(host int) string { return string(rune('a' + host)) }

func (w *world) wire(host int, id ID) *wire {
	for _, x := range w.wires {
		if x.ids[host] == id {
			return x
		}
	}
	w.t.Fatalf("%s has no connection %v", nameOf(host), id)
	return nil
}

// step gives a host inputs and carries out what it asks for.
func (w *world) step(host int, in ...Input) {
	trial := w.hosts[host]
	trial.step(in...)
	trial.c.check(w.t)
	other := 1 - host
	for _, a := range slices.Clone(trial.out.Actions) {
		switch a.Do {
		case Dial:
			w.next++
			x := &wire{dialler: host}
			x.ids[host], x.ids[other] = a.ID, w.next
			x.inFlight[other] = []Input{
				{Kind: Arrived, ID: w.next, Source: prefix(host)},
				{Kind: Greeted, ID: w.next, Peer: nameOf(host), Greeting: a.Greeting},
			}
			w.wires = append(w.wires, x)
		case Accept:
			w.send(host, a.ID, Input{Kind: Answered, Answer: greeting.Answer{Code: greeting.Accept, Incarnation: trial.c.cfg.Incarnation}})
			w.wire(host, a.ID).isUp[host] = true
		case Use:
			w.wire(host, a.ID).isUp[host] = true
		case Refuse:
			w.send(host, a.ID, Input{Kind: Answered, Answer: greeting.Answer{Code: a.Code, Incarnation: trial.c.cfg.Incarnation, Reason: "no"}})
			w.end(host, a.ID)
		case Close:
			x := w.wire(host, a.ID)
			// Where the network breaks connections, a call may be accepted in the moment in
			// which its caller gives it up.
			isUsed := x.isUp[0] && x.isUp[1] || w.calm && (x.isUp[0] || x.isUp[1])
			if isUsed && !x.broken && !errors.Is(a.Err, ErrDone) && !errors.Is(a.Err, ErrSlow) {
				w.t.Fatalf("%s closes a valid connection %v that is used: %v", nameOf(host), a.ID, a.Err)
			}
			w.end(host, a.ID)
		case Drain:
			if x := w.wire(host, a.ID); errors.Is(a.Err, ErrSuperseded) && x.isUp[0] && x.isUp[1] && !x.broken {
				w.t.Fatalf("%s replaces a valid connection %v that both use", nameOf(host), a.ID)
			}
			w.send(host, a.ID, Input{Kind: Finished})
		case Ping:
			if x := w.wire(host, a.ID); !x.broken {
				x.reads[host]++
			}
		case Check:
			w.step(host, Input{Kind: Sampled, ID: a.ID, Sample: Sample{Reads: w.wire(host, a.ID).reads[host]}})
		default:
		}
	}
}

// send sends on a connection, unless it is broken.
func (w *world) send(host int, id ID, in Input) {
	x := w.wire(host, id)
	if !x.broken {
		in.ID = x.ids[1-host]
		x.inFlight[1-host] = append(x.inFlight[1-host], in)
	}
}

// end closes a host's side of a connection.
func (w *world) end(host int, id ID) {
	x := w.wire(host, id)
	w.send(host, id, Input{Kind: Ended, Err: fmt.Errorf("the other side has closed it")})
	x.inFlight[host] = nil
	x.broken = true
}

// act does one thing that may happen.
func (w *world) act() {
	var can []func()
	for _, x := range w.wires {
		for host := range w.hosts {
			if len(x.inFlight[host]) > 0 {
				can = append(can, func() {
					in := x.inFlight[host][0]
					x.inFlight[host] = x.inFlight[host][1:]
					w.step(host, in)
				})
			}
		}
		if !w.calm && !x.broken && len(w.wires) < 20 {
			can = append(can, func() { // it breaks: what is under way may still come, or not
				x.broken = true
				for host := range w.hosts {
					keep := rapid.IntRange(0, len(x.inFlight[host])).Draw(w.t, "arrives")
					x.inFlight[host] = append(x.inFlight[host][:keep:keep], Input{Kind: Ended, ID: x.ids[host], Err: fmt.Errorf("it broke")})
				}
			})
		}
	}
	if !w.calm {
		for host := range w.hosts {
			can = append(can,
				func() { w.step(host, Input{Kind: Wanted, Peer: nameOf(1 - host)}) },
				func() { w.pass(time.Duration(rapid.IntRange(1, 2000).Draw(w.t, "ms")) * time.Millisecond) })
		}
	}
	if len(can) > 0 {
		can[rapid.IntRange(0, len(can)-1).Draw(w.t, "what")]()
	}
}

func (w *world) pass(d time.Duration) {
	end := w.hosts[0].now.Add(d)
	for host, trial := range w.hosts {
		for trial.c.Deadline() <= end {
			trial.now = max(trial.now, trial.c.Deadline())
			w.step(host)
		}
		trial.now = end
	}
}

func (w *world) flying() (n int) {
	for _, x := range w.wires {
		n += len(x.inFlight[0]) + len(x.inFlight[1])
	}
	return n
}

// TestOneConnectionSurvives: whatever two hosts do at once, and whatever breaks, they
// end with one connection, the same at both; and none that both use is closed but by
// the network, or once both are done with it.
func TestOneConnectionSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			w.act()
		}
		for w.flying() > 0 {
			w.act()
		}
		w.calm = true
		for host := range w.hosts {
			if host == 0 || rapid.Bool().Draw(t, "both") {
				w.step(host, Input{Kind: Held, Peer: nameOf(1 - host)})
			}
		}
		w.settle()
	})
}

// restart has a host start again, in the next incarnation. The other one hears of the end
// of its connections, or, if its machine has gone, does not.
func (w *world) restart(host int, isSilent bool) {
	for _, x := range w.wires {
		x.inFlight[host] = nil
		if x.ids[host] == 0 {
			continue
		}
		if !x.broken && !isSilent {
			x.inFlight[1-host] = append(x.inFlight[1-host], Input{Kind: Ended, ID: x.ids[1-host], Err: errors.New("it was killed")})
		}
		x.broken, x.ids[host] = true, 0
	}
	before := w.hosts[host]
	w.hosts[host] = newTrial(func(c *Config) { c.Name, c.Incarnation = nameOf(host), before.c.cfg.Incarnation+1 })
	w.hosts[host].now = before.now
}

// TestRestartedHostIsMet: however often the two hosts start again, in the middle of
// whatever they do, with or without a word of it to the other, they end with one
// connection.
func TestRestartedHostIsMet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 4).Draw(t, "restarts") {
			for range rapid.IntRange(0, 20).Draw(t, "steps") {
				w.act()
			}
			w.restart(rapid.IntRange(0, 1).Draw(t, "who"), rapid.Bool().Draw(t, "silent"))
		}
		w.calm = true
		for host := range w.hosts {
			w.step(host, Input{Kind: Held, Peer: nameOf(1 - host)})
		}
		w.settle()
	})
}

// settle lets all that is under way end, and time pass, after which the hosts agree.
func (w *world) settle() {
	for range 50 {
		for w.flying() > 0 {
			w.act()
		}
		w.pass(time.Second)
	}
	w.agree()
}

// agree checks that both hosts use one connection, and have no other.
func (w *world) agree() {
	var ids [2]ID
	for host, trial := range w.hosts {
		l := &trial.c.peer(nameOf(1 - host)).channels[0]
		if l.conn == nil || len(l.peer.conns) != 1 {
			w.t.Fatalf("%s: %s", nameOf(host), trial.describe(nameOf(1-host)))
		}
		ids[host] = l.conn.id
	}
	if x := w.wire(0, ids[0]); x.ids[1] != ids[1] || x.broken {
		w.t.Fatalf("the two use different connections: %v and %v", ids[0], ids[1])
	}
}

// TestCrossingCallsTakeNoTime: two hosts that call each other at once agree as soon as
// what is under way has come, again and again after one connection has broken.
func TestCrossingCallsTakeNoTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.calm = true
		for range rapid.IntRange(1, 4).Draw(t, "times") {
			first := rapid.IntRange(0, 1).Draw(t, "first")
			w.step(first, Input{Kind: Wanted, Peer: nameOf(1 - first)})
			for n := rapid.IntRange(0, 4).Draw(t, "before the other"); n > 0 && w.flying() > 0; n-- {
				w.act()
			}
			w.step(1-first, Input{Kind: Wanted, Peer: nameOf(first)})
			for w.flying() > 0 {
				w.act()
			}
			w.agree()
			// One of the two finds that it has broken, calls, and then the other one does.
			x := w.wires[len(w.wires)-1]
			for _, y := range w.wires {
				if !y.broken {
					x = y
				}
			}
			x.broken = true
			one := rapid.IntRange(0, 1).Draw(t, "finds out")
			w.step(one, Input{Kind: Ended, ID: x.ids[one], Err: errors.New("it broke")})
			w.step(one, Input{Kind: Wanted, Peer: nameOf(1 - one)})
			x.inFlight[1-one] = append(x.inFlight[1-one], Input{Kind: Ended, ID: x.ids[1-one], Err: errors.New("it broke")})
			for w.flying() > 0 {
				w.act()
			}
			w.agree()
			y := w.wire(0, w.hosts[0].c.peers["b"].channels[0].conn.id)
			y.broken = true
			for host := range w.hosts {
				w.step(host, Input{Kind: Ended, ID: y.ids[host], Err: errors.New("it broke")})
			}
		}
	})
}

func (t *trial) describe(name string) (all []string) {
	for _, k := range t.c.peers[name].conns {
		all = append(all, fmt.Sprintf("%v in state %d", k.id, k.state))
	}
	return all
}
