package peering

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

// wire is a physical connection between the two hosts of a world.
type wire struct {
	dialler  int
	pair     int        // of rails, on which it lies
	ids      [2]ID      // at each host
	conns    [2]ID      // the connection of which it is a path, at each host; 0: not yet
	inFlight [2][]Input // to each host, in order
	hasCome  [2]bool    // the host knows of it
	isUp     [2]bool    // the host has used it
	isLeft   [2]bool    // and sends nothing more on it, in favour of a new one
	isOver   [2]bool    // the host has closed it, or knows of its end
	broken   bool
}

// world is two hosts, and a network that delays, cuts rails, and breaks connections.
type world struct {
	t        *rapid.T
	hosts    [2]*trial
	wires    []*wire
	next     ID
	breaks   int
	calm     bool // nothing breaks any more
	isStrict bool // and what had broken before is known

	hasRails   bool                       // several, which are cut, added and removed
	random     *rand.Rand                 // of a world that has
	isOneSided bool                       // who has been called finds nothing, and where it is cut it hears of no end
	pairs      uint8                      // of rails that there are
	cut        [greeting.MaxPaths][2]bool // nothing comes to the host on it
	knows      [2]map[ID]uint8            // the pairs that the host's driver has reported of its connections
	heard      [2]map[ID]core.Time        // when the host has last heard something of the other
	alive      [2]map[ID]uint64           // signs of life that it has had
}

// newWorld returns one with a number of pairs of rails.
func newWorld(t *rapid.T, pairs int) *world {
	w := &world{t: t, pairs: 1<<pairs - 1, hasRails: pairs > 1}
	for i := range w.hosts {
		w.hosts[i] = newTrial(func(c *Config) { c.Name = nameOf(i) })
		w.begin(i)
	}
	if w.hasRails {
		w.random = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		w.isOneSided = w.pick(2, "one-sided") == 1
	}
	return w
}

// begin has a host know of no connection.
func (w *world) begin(host int) {
	w.knows[host], w.heard[host], w.alive[host] = map[ID]uint8{}, map[ID]core.Time{}, map[ID]uint64{}
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

// paths returns those of a host's connection that have not ended there.
func (w *world) paths(host int, conn ID) (all []*wire) {
	for _, x := range w.wires {
		if x.conns[host] == conn && !x.isOver[host] {
			all = append(all, x)
		}
	}
	return all
}

// isOpen reports whether everything passes on a wire.
func (w *world) isOpen(x *wire) bool { return !x.broken && !w.cut[x.pair][0] && !w.cut[x.pair][1] }

// isUsed reports whether both hosts use a path of a connection, on which everything passes.
func (w *world) isUsed(all []*wire) bool {
	return slices.ContainsFunc(all, func(x *wire) bool {
		// Where the network breaks connections, a call may be accepted in the moment in
		// which its caller gives it up.
		return w.isOpen(x) && (x.isUp[0] && x.isUp[1] || w.isStrict && (x.isUp[0] || x.isUp[1]))
	})
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
			x := &wire{dialler: host, pair: int(a.Path) - 1}
			if a.Path == 0 {
				x.pair, a.Conn = w.choose(), a.ID
			}
			x.ids[host], x.ids[other], x.conns[host], x.hasCome[host] = a.ID, w.next, a.Conn, true
			x.inFlight[other] = []Input{
				{Kind: Arrived, ID: w.next, Source: prefix(host)},
				{Kind: Greeted, ID: w.next, Peer: nameOf(host), Greeting: a.Greeting},
			}
			w.wires = append(w.wires, x)
		case Accept:
			x := w.wire(host, a.ID)
			w.send(host, x, Input{Kind: Answered, Answer: greeting.Answer{Code: greeting.Accept, Incarnation: trial.c.cfg.Incarnation}})
			if x.isUp[host], x.conns[host] = true, a.Conn; a.Path == 0 {
				x.conns[host] = a.ID
			}
		case Use:
			w.wire(host, a.ID).isUp[host] = true
		case Refuse:
			x := w.wire(host, a.ID)
			w.send(host, x, Input{Kind: Answered, Answer: greeting.Answer{Code: a.Code, Incarnation: trial.c.cfg.Incarnation, Reason: "no"}})
			w.end(host, x)
		case Close:
			all := w.paths(host, a.ID)
			if w.isUsed(all) && !errors.Is(a.Err, ErrDone) && !errors.Is(a.Err, ErrSlow) {
				w.t.Fatalf("%s closes a valid connection %v that is used: %v", nameOf(host), a.ID, a.Err)
			}
			if x := w.wire(host, a.ID); !slices.Contains(all, x) {
				all = append(all, x)
			}
			for _, x := range all {
				w.end(host, x)
			}
		case ClosePath:
			x := w.wire(host, a.ID)
			if x.isUp[0] && x.isUp[1] && !x.broken && !errors.Is(a.Err, ErrRemoved) {
				w.t.Fatalf("%s closes a valid path %v that both use: %v", nameOf(host), a.ID, a.Err)
			}
			w.end(host, x)
		case Drain:
			all := w.paths(host, a.ID)
			isBoth := func(x *wire) bool { return w.isOpen(x) && x.isUp[0] && x.isUp[1] && !x.isLeft[other] }
			for _, x := range all {
				x.isLeft[host] = true
			}
			if errors.Is(a.Err, ErrSuperseded) && slices.ContainsFunc(all, isBoth) {
				w.t.Fatalf("%s replaces a valid connection %v that both use", nameOf(host), a.ID)
			}
			if i := slices.IndexFunc(all, func(x *wire) bool { return !x.broken }); i >= 0 {
				w.send(host, all[i], Input{Kind: Finished})
			}
		case Ping:
			if slices.ContainsFunc(w.paths(host, a.ID), w.isOpen) {
				w.alive[host][a.ID]++
			}
		case Check:
			w.step(host, Input{Kind: Sampled, ID: a.ID, Sample: w.sample(host, a.ID)})
		default:
		}
	}
}

// pick returns a number below n. With several rails it is as often each one: rapid prefers the
// small ones, which make short worlds, in which there are hardly any paths.
func (w *world) pick(n int, what string) int {
	if w.random != nil {
		return w.random.IntN(n)
	}
	return rapid.IntRange(0, n-1).Draw(w.t, what)
}

// choose returns the pair on which a connection's first path is dialled.
func (w *world) choose() int {
	var can []int
	for i := range w.cut {
		if w.pairs>>i&1 != 0 && !(w.calm && (w.cut[i][0] || w.cut[i][1])) {
			can = append(can, i)
		}
	}
	if len(can) == 1 {
		return can[0]
	}
	return can[w.pick(len(can), "pair")]
}

// sample is what a host's driver knows of a connection.
func (w *world) sample(host int, id ID) Sample {
	now := w.hosts[host].now
	hears := func(x *wire) bool { return !w.cut[x.pair][host] && !(x.broken && x.ids[1-host] != 0) }
	if _, has := w.heard[host][id]; !has || slices.ContainsFunc(w.paths(host, id), hears) {
		w.heard[host][id] = now
	}
	return Sample{Heard: now.Sub(w.heard[host][id]), Reads: w.alive[host][id]}
}

// send sends on a wire, unless it is broken.
func (w *world) send(host int, x *wire, in Input) {
	if x.broken {
		return
	}
	in.ID = x.ids[1-host]
	if in.Kind == Finished {
		in.ID = x.conns[1-host]
	}
	x.inFlight[1-host] = append(x.inFlight[1-host], in)
}

// end closes a host's side of a wire.
func (w *world) end(host int, x *wire) {
	if !w.isOneSided || !w.cut[x.pair][1-host] {
		w.send(host, x, Input{Kind: Ended, Err: fmt.Errorf("the other side has closed it")})
	}
	x.inFlight[host] = nil
	x.broken, x.isOver[host] = true, true
}

// find has a host's driver find that nothing passes on a wire any more.
func (w *world) find(host int, x *wire) {
	w.end(host, x)
	w.step(host, Input{Kind: Ended, ID: x.ids[host], Err: errors.New("nothing is acknowledged")})
}

// isDead reports whether a host can find that nothing passes on a wire.
func (w *world) isDead(host int, x *wire) bool {
	return !w.isOpen(x) && x.hasCome[host] && !x.isOver[host] && x.ids[host] != 0 && (!w.isOneSided || x.dialler == host)
}

// receive has a host take what comes next on a wire.
func (w *world) receive(host int, x *wire) {
	in := x.inFlight[host][0]
	x.inFlight[host] = x.inFlight[host][1:]
	x.hasCome[host] = true
	x.isOver[host] = x.isOver[host] || in.Kind == Ended
	w.step(host, in)
}

// report has a host's driver report the pairs of rails of a connection, where it has not.
func (w *world) report(host int) (has bool) {
	for _, p := range w.hosts[host].c.peers {
		k := p.channels[0].conn
		if k == nil || !k.dialled() || w.knows[host][k.id] == w.pairs {
			continue
		}
		w.knows[host][k.id] = w.pairs
		w.step(host, Input{Kind: Paired, ID: k.id, Pairs: w.pairs, First: uint8(w.wire(host, k.id).pair)})
		has = true
	}
	return has
}

// renew has a host's driver find that a connection is to be replaced.
func (w *world) renew(host int) {
	if p := w.hosts[host].c.peers[nameOf(1-host)]; p != nil && p.channels[0].conn != nil {
		w.step(host, Input{Kind: Renew, ID: p.channels[0].conn.id, Err: errors.New("used up")})
	}
}

// act does one thing that may happen.
func (w *world) act() {
	var comes, breaks, finds []func()
	for _, x := range w.wires {
		for host := range w.hosts {
			if len(x.inFlight[host]) > 0 && !w.cut[x.pair][host] {
				comes = append(comes, func() { w.receive(host, x) })
			}
			if w.isDead(host, x) {
				finds = append(finds, func() { w.find(host, x) })
			}
		}
		if !x.broken && w.breaks < 20 {
			breaks = append(breaks, func() { w.breakOff(x) })
		}
	}
	var others []func()
	for host := range w.hosts {
		others = append(others,
			func() { w.step(host, Input{Kind: Wanted, Peer: nameOf(1 - host)}) },
			func() { w.renew(host) },
			func() { w.pass(time.Duration(1+w.pick(2000, "ms")) * time.Millisecond) })
	}
	switch {
	case w.calm:
		w.one(comes)
	case w.hasRails:
		w.actRails(comes, breaks, finds, others)
	default:
		w.one(slices.Concat(comes, breaks, others))
	}
}

// actRails is act in a world with rails: most of the time something comes.
func (w *world) actRails(comes, breaks, finds, others []func()) {
	host := w.pick(2, "host")
	switch w.pick(20, "what") {
	case 0:
		w.one(breaks)
	case 1:
		w.one(finds)
	case 2:
		w.vary()
	case 3, 4:
		w.report(host)
	case 5, 6:
		w.pass(time.Duration(1+w.pick(30, "ms")) * time.Millisecond)
	case 7, 8:
		w.one(others)
	default:
		w.one(comes)
	}
}

// one does one of them.
func (w *world) one(of []func()) {
	if len(of) > 0 {
		of[w.pick(len(of), "which")]()
	}
}

// breakOff breaks a wire: what is under way may still come, or not.
func (w *world) breakOff(x *wire) {
	w.breaks++
	x.broken = true
	for host := range w.hosts {
		keep := w.pick(len(x.inFlight[host])+1, "arrives")
		x.inFlight[host] = append(x.inFlight[host][:keep:keep], Input{Kind: Ended, ID: x.ids[host], Err: fmt.Errorf("it broke")})
	}
}

// vary restores a pair of rails or cuts it, in one direction or both, or adds or removes one.
func (w *world) vary() {
	i := w.pick(3, "rail")
	if w.pick(4, "exists") == 0 {
		if next := w.pairs ^ 1<<i; next != 0 {
			w.pairs = next
		}
		return
	}
	if c := &w.cut[i]; c[0] || c[1] {
		*c = [2]bool{}
	} else {
		both := w.pick(3, "direction")
		*c = [2]bool{both != 0, both != 1}
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

// flying returns how much is under way, and comes.
func (w *world) flying() (n int) {
	for _, x := range w.wires {
		for host := range w.hosts {
			if !w.cut[x.pair][host] {
				n += len(x.inFlight[host])
			}
		}
	}
	return n
}

// quiet has all come that is under way.
func (w *world) quiet() {
	for w.flying() > 0 {
		w.act()
	}
}

// settle lets all that is under way end, and time pass, after which the hosts agree.
func (w *world) settle() {
	for range 50 {
		w.quiet()
		if w.hasRails {
			for host := range w.hosts {
				w.report(host)
				w.findDead(host)
			}
			w.quiet()
		}
		w.pass(time.Second)
	}
	w.quiet()
	w.agree()
}

// findDead has a host find what is dead, where another path lives; without one it takes its
// time.
func (w *world) findDead(host int) {
	for _, x := range w.wires {
		if w.isDead(host, x) && slices.ContainsFunc(w.paths(host, x.conns[host]), w.isOpen) {
			w.find(host, x)
		}
	}
}

// agree checks that both hosts use one connection, and have no other, with one path on each pair
// of rails on which everything passes.
func (w *world) agree() {
	var ids [2]ID
	var up [2][]*wire
	for host, trial := range w.hosts {
		l := &trial.c.peer(nameOf(1 - host)).channels[0]
		if l.conn == nil || len(l.peer.conns) != 1 {
			w.t.Fatalf("%s: %s", nameOf(host), trial.describe(nameOf(1-host)))
		}
		ids[host] = l.conn.id
		for i := range w.cut {
			if w.pairs>>i&1 == 0 || w.cut[i][0] || w.cut[i][1] {
				continue
			}
			up[host] = append(up[host], w.onPair(host, l.conn, i))
		}
	}
	if x := w.wire(0, ids[0]); x.ids[1] != ids[1] || x.broken && !w.hasRails {
		w.t.Fatalf("the two use different connections: %v and %v", ids[0], ids[1])
	}
	if !slices.Equal(up[0], up[1]) || len(up[0]) == 0 {
		w.t.Fatalf("the two use different paths: %v and %v", up[0], up[1])
	}
}

// onPair returns the only path that a host's connection has on a pair.
func (w *world) onPair(host int, k *conn, pair int) *wire {
	var is []*wire
	for _, x := range w.paths(host, k.id) {
		known := w.hosts[host].c.conns[x.ids[host]]
		if x.pair == pair && known != nil && (known == k && !k.lacksFirst || known.of == k && known.state == up) {
			is = append(is, x)
		}
	}
	if len(is) != 1 || is[0].broken || !is[0].isUp[host] || len(w.paths(host, k.id)) != k.living()+k.calling() {
		w.t.Fatalf("%s has %d paths on pair %d: %s, %d in all", nameOf(host), len(is), pair, w.hosts[host].describe(nameOf(1-host)), len(w.paths(host, k.id)))
	}
	return is[0]
}

// calling returns how many calls for paths of a connection are under way.
func (k *conn) calling() (n int) {
	if k.paths != nil {
		for i := range k.paths.of {
			if path := k.paths.of[i].path; path != nil && path.state == dialling {
				n++
			}
		}
	}
	return n
}

func (t *trial) describe(name string) (all []string) {
	for _, k := range t.c.peers[name].conns {
		text := fmt.Sprintf("%v in state %d", k.id, k.state)
		if k.paths != nil {
			text += k.paths.String()
		}
		all = append(all, text)
	}
	return all
}
