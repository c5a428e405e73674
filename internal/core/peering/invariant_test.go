package peering

import (
	"slices"
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
	checks, paths, rejoins, takenOf := 0, 0, 0, map[*peer]int{}
	for id, k := range c.conns {
		if k.id != id || c.peers[k.peer.name] != k.peer || slices.Contains(k.peer.conns, k) != (k.of == nil) {
			t.Fatalf("connection %v is not where it should be", k.id)
		}
		if isTaken := !k.dialled() && !k.lacksFirst; isTaken != (k.counted != nil) {
			t.Fatalf("connection %v is counted: %v", k.id, !isTaken)
		} else if isTaken {
			taken++
			takenOf[k.peer]++
		}
		if k.of != nil {
			paths++
		}
		rejoins += k.checkPaths(c, t)
		if k.check.Running() {
			checks++
		}
		if hasEnd := k.state == dialling || k.of == nil && (k.state == draining || k.state == up); k.check.Running() != hasEnd {
			t.Fatalf("connection %v in state %v is looked at again: %v", k.id, k.state, !hasEnd)
		}
	}
	if paths != c.paths || rejoins != len(c.rejoins) {
		t.Fatalf("%d paths, counted are %d; %d of %d timers are those of pairs", paths, c.paths, rejoins, len(c.rejoins))
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
		members[HostOf(p.name)] = [4]int{n[0] + 1, n[1] + len(p.claims), n[2] + takenOf[p], n[3]}
	}
	for i, s := range c.shares {
		if s.place != i || c.shareOf[s.host] != s || members[s.host] != [4]int{s.peers, s.claims, s.taken.Len(), s.unused} || s.taken.Len() > c.shares[0].taken.Len() {
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
			if ups > 1 {
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

// checkPaths holds a connection's paths to what is always true of them, and returns how many
// wait for their next call.
func (k *conn) checkPaths(c *Core, t fataler) (waiting int) {
	t.Helper()
	if k.of != nil {
		if c.conns[k.of.id] != k.of || k.of.of != nil || k.onPair().path != k || k.peer != k.of.peer || k.class != k.of.class || k.incarnation != k.of.incarnation ||
			k.state != dialling && k.state != up || k.dialled() != k.of.dialled() {
			t.Fatalf("%v is no path of %v", k.id, k.of.id)
		}
		return 0
	}
	if n := k.living(); n < 1 || n > 1 && k.state != up && k.state != draining {
		t.Fatalf("connection %v has %d paths in state %v", k.id, n, k.state)
	}
	if k.paths == nil {
		return 0
	}
	for i := range k.paths.of {
		p := &k.paths.of[i]
		ways := 0
		for _, is := range []bool{p.path != nil, p.redial.Running(), k.dialled() && p.isFirst() && !k.lacksFirst} {
			if is {
				ways++
			}
		}
		isCall := p.redial.Running() || p.path != nil && p.path.state == dialling
		if p.conn != k || p.path != nil && (p.path.of != k || int(p.path.pair) != i) || p.isWanted() != (ways == 1) && (p.isWanted() || ways > 1 || isCall) {
			t.Fatalf("pair %d of connection %v: %v", i, k.id, k.paths)
		}
		if p.redial.Running() {
			waiting++
		}
	}
	return waiting
}
