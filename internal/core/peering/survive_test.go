package peering

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

// TestOneConnectionSurvives: whatever two hosts do at once, and whatever breaks, they
// end with one connection, the same at both; and none that both use is closed but by
// the network, or once both are done with it.
func TestOneConnectionSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 1)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			w.act()
		}
		w.quiet()
		w.calm, w.isStrict = true, true
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
		x.broken, x.ids[host], x.conns[host] = true, 0, 0
	}
	before := w.hosts[host]
	w.hosts[host] = newTrial(func(c *Config) { c.Name, c.Incarnation = nameOf(host), before.c.cfg.Incarnation+1 })
	w.hosts[host].now = before.now
	w.begin(host)
}

// TestRestartedHostIsMet: however often the two hosts start again, in the middle of
// whatever they do, with or without a word of it to the other, they end with one
// connection.
func TestRestartedHostIsMet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 1)
		for range rapid.IntRange(1, 4).Draw(t, "restarts") {
			for range rapid.IntRange(0, 20).Draw(t, "steps") {
				w.act()
			}
			w.restart(rapid.IntRange(0, 1).Draw(t, "who"), rapid.Bool().Draw(t, "silent"))
		}
		w.calm, w.isStrict = true, true
		for host := range w.hosts {
			w.step(host, Input{Kind: Held, Peer: nameOf(1 - host)})
		}
		w.settle()
	})
}

// TestCrossingCallsTakeNoTime: two hosts that call each other at once agree as soon as
// what is under way has come, again and again after one connection has broken.
func TestCrossingCallsTakeNoTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 1)
		w.calm, w.isStrict = true, true
		for range rapid.IntRange(1, 4).Draw(t, "times") {
			first := rapid.IntRange(0, 1).Draw(t, "first")
			w.step(first, Input{Kind: Wanted, Peer: nameOf(1 - first)})
			for n := rapid.IntRange(0, 4).Draw(t, "before the other"); n > 0 && w.flying() > 0; n-- {
				w.act()
			}
			w.step(1-first, Input{Kind: Wanted, Peer: nameOf(first)})
			w.quiet()
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
			w.find(one, x)
			w.step(one, Input{Kind: Wanted, Peer: nameOf(1 - one)})
			x.inFlight[1-one] = append(x.inFlight[1-one], Input{Kind: Ended, ID: x.ids[1-one], Err: errors.New("it broke")})
			w.quiet()
			w.agree()
			y := w.wire(0, w.hosts[0].c.peers["b"].channels[0].conn.id)
			y.broken = true
			for host := range w.hosts {
				w.find(host, y)
			}
		}
	})
}

// TestPathsSurvive: whatever breaks, and whichever pairs of rails are cut in one direction or both,
// restored, added and removed, at whatever moment: in the end both hosts have one connection with
// one path, the same at both, on each pair on which everything passes; and none that both use is
// closed but for a pair that is removed.
func TestPathsSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, rapid.IntRange(2, 3).Draw(t, "pairs"))
		for range w.pick(500, "steps") {
			w.act()
		}
		w.calmDown()
		for host := range w.hosts {
			if host == 0 || rapid.Bool().Draw(t, "both") {
				w.step(host, Input{Kind: Held, Peer: nameOf(1 - host)})
			}
		}
		w.settle()
	})
}

// calmDown has nothing change any more; on one pair at least everything passes.
func (w *world) calmDown() {
	w.calm = true
	i := w.pick(3, "passes")
	w.pairs |= 1 << i
	w.cut[i] = [2]bool{}
	w.quiet()
	w.isStrict = true
}

// TestRestartedHostHasPaths: the same, and hosts start again.
func TestRestartedHostHasPaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 3)
		for range 1 + w.pick(3, "restarts") {
			for range w.pick(200, "steps") {
				w.act()
			}
			w.restart(rapid.IntRange(0, 1).Draw(t, "who"), rapid.Bool().Draw(t, "silent"))
		}
		w.calmDown()
		for host := range w.hosts {
			w.step(host, Input{Kind: Held, Peer: nameOf(1 - host)})
		}
		w.settle()
	})
}

// TestConnectionOutlivesItsPaths: pairs of rails are cut, one after the other and in one direction
// or both, and restored; either host finds that, or only the one that has dialled. The connection
// is the same in the end, with all paths.
func TestConnectionOutlivesItsPaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 3)
		w.calm, w.isStrict = true, true
		dialler := w.pick(2, "dialler")
		w.step(dialler, Input{Kind: Held, Peer: nameOf(1 - dialler)})
		w.settle()
		before := w.hosts[dialler].c.peers[nameOf(1-dialler)].channels[0].conn
		for range 1 + w.pick(4, "cuts") {
			i, both := w.pick(3, "rail"), w.pick(3, "direction")
			w.cut[i] = [2]bool{both != 0, both != 1}
			for range w.pick(3, "while") {
				w.quiet()
				w.findDead(w.pick(2, "host"))
				w.pass(time.Duration(1+w.pick(2000, "ms")) * time.Millisecond)
			}
			if w.pick(2, "restored") == 0 {
				w.cut[i] = [2]bool{}
			}
			if w.cut[(i+1)%3] != [2]bool{} && w.cut[(i+2)%3] != [2]bool{} {
				w.cut = [greeting.MaxPaths][2]bool{}
			}
			if w.pick(2, "settles") == 0 {
				w.settle()
			}
		}
		w.cut = [greeting.MaxPaths][2]bool{}
		w.settle()
		if now := w.hosts[dialler].c.peers[nameOf(1-dialler)].channels[0].conn; now != before {
			t.Fatalf("another connection: %v, after %v", now.id, before.id)
		}
	})
}
