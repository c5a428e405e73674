package sim

import (
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
)

// state is that of a connection.
type state uint8

const (
	idle    state = iota
	dialing       // one end has asked for it
	up            // it stands; the ends may not know yet
	broken        // both ends expect that it is made, as a rule again
)

// conn is the connection between two nodes.
type conn struct {
	paths [2]int32 // the dialer's way, and the way back
	state state
	token uint64  // of the last attempt or cut: those before are void
	life  uint64  // grows with each change of state
	knows [2]bool // whether the node that sends on paths[i] knows that it stands
}

// end returns which of the two ways path is.
func (c *conn) end(path int32) int {
	if path == c.paths[0] {
		return 0
	}
	return 1
}

// reported notes that an Up has arrived on path: the other way can be written.
func (c *conn) reported(path int32) { c.knows[1-c.end(path)] = true }

func (c *conn) writable(path int32) bool { return c.state == up && c.knows[c.end(path)] }

func (c *conn) set(s state) {
	c.state, c.knows = s, [2]bool{}
	c.token++
	c.life++
}

// Connect begins a connection that both nodes expect: none is asked, and each is
// notified of the other's death even where that comes before the connection. Where
// there is one already, or one on its way, nothing happens. Both must be alive.
func (w *World) Connect(a, b NodeID) {
	if w.nodes[a].node == nil || w.nodes[b].node == nil {
		panic("sim: a connection of a crashed node")
	}
	w.begin(a, b, broken)
}

// begin has node a connect to node b.
func (w *World) begin(a, b NodeID, s state) {
	if a == b {
		panic("sim: a node connects to itself")
	}
	i := w.path(a, b)
	p := &w.paths[i]
	if p.conn == nil {
		p.conn = &conn{}
		w.paths[p.back].conn = p.conn
		w.conns = append(w.conns, p.conn)
	}
	c := p.conn
	if c.state != idle {
		return
	}
	c.paths = [2]int32{i, p.back}
	c.set(s)
	w.attempt(c, w.now.Add(w.travel(i)))
	w.patience(c)
}

// Connected reports whether both nodes know that there is a connection between
// them.
func (w *World) Connected(a, b NodeID) bool {
	i, ok := w.index[[2]NodeID{a, b}]
	if !ok || w.paths[i].conn == nil {
		return false
	}
	c := w.paths[i].conn
	return c.state == up && c.knows == [2]bool{true, true}
}

// Break breaks the connection between two nodes, and reports whether there was
// one. It comes back by itself.
func (w *World) Break(a, b NodeID) bool {
	w.outside()
	i, ok := w.index[[2]NodeID{a, b}]
	if !ok || w.paths[i].conn == nil || w.paths[i].conn.state != up {
		return false
	}
	w.trace(entry{what: broke, node: a, peer: b})
	c := w.paths[i].conn
	c.set(broken)
	for _, path := range c.paths {
		w.tear(path, messageStream)
	}
	w.attempt(c, w.now.Add(w.upTo(w.cfg.Reconnect)))
	w.patience(c)
	return true
}

// attempt has the connection made at at.
func (w *World) attempt(c *conn, at core.Time) {
	w.queue.Push(at, event{kind: connectDue, path: c.paths[0], token: c.token})
}

// patience has the connection given up after a while.
func (w *World) patience(c *conn) {
	if w.cfg.Patience > 0 {
		w.queue.Push(w.now.Add(w.cfg.Patience), event{kind: patienceDue, path: c.paths[0], token: c.token})
	}
}

// connectReady reports whether the attempt of an event can be made. One that
// meets a cut waits until it is repaired.
func (w *World) connectReady(e *event) bool {
	p := &w.paths[e.path]
	if p.conn.token != e.token {
		return false
	}
	if w.blocked(p) {
		w.waiting = append(w.waiting, *e)
		return false
	}
	return true
}

// connect makes a connection, or is refused.
func (w *World) connect(e *event) {
	c := w.paths[e.path].conn
	there, back := c.paths[0], c.paths[1]
	if c.state == dialing {
		if w.nodes[w.paths[there].to].node == nil {
			c.set(idle)
			w.carry(back, messageStream, item{kind: Refused}, w.travel(back))
			return
		}
	}
	c.set(up)
	w.carry(there, messageStream, item{kind: Up, life: c.life}, 0)
	w.carry(back, messageStream, item{kind: Up, life: c.life}, w.travel(back))
}

// giveUp ends a connection that the world has no patience with any more.
func (w *World) giveUp(e *event) {
	c := w.paths[e.path].conn
	there, back := c.paths[0], c.paths[1]
	if c.state == dialing {
		c.set(idle)
		w.carry(back, messageStream, item{kind: Refused}, 0)
		return
	}
	c.set(idle)
	for _, path := range []int32{there, back} {
		for which := range uint8(streams) {
			w.clear(path, which)
		}
		w.carry(path, messageStream, item{kind: Dead}, 0)
	}
}

// hangUp closes a connection from one end.
func (w *World) hangUp(from, to NodeID) {
	i := w.path(from, to)
	p := &w.paths[i]
	if p.conn == nil || p.conn.state == idle || p.conn.state == dialing && p.conn.end(i) == 1 {
		return
	}
	stood := p.conn.state != dialing
	p.conn.set(idle)
	w.shed(p.back, messageStream, 0)
	if stood {
		w.carry(i, messageStream, item{kind: Closed}, w.travel(i))
	}
}

// onPeerLost ends what a crashed node had to do with the one at the end of path.
func (w *World) onPeerLost(path int32) {
	p := &w.paths[path]
	peer := w.nodes[p.to].node
	hungUp := w.hangingUp(path)
	for which := range uint8(streams) {
		w.clear(p.back, which)
		w.tear(path, which)
	}
	// Whose word that it closes the connection is lost has closed nothing.
	reported := hungUp && !w.hangingUp(path)
	// An attempt of the other end goes on, and will find nobody.
	if c := p.conn; c != nil && c.state != idle && (c.state != dialing || c.end(path) == 0) {
		reported = reported || c.state != dialing
		c.set(idle)
	}
	if !reported || peer == nil {
		return
	}
	s, control := w.stream(path, messageStream), w.stream(path, controlStream)
	at := max(w.now.Add(w.cfg.Death), s.floor, control.floor)
	control.floor = at // what a next life says comes after the news
	w.schedule(path, messageStream, item{kind: Dead, at: at})
}

// hangingUp reports whether the news that one end has closed the connection is
// on its way on path.
func (w *World) hangingUp(path int32) bool {
	s := w.paths[path].streams[messageStream]
	return s != nil && slices.ContainsFunc(s.items(), func(it item) bool { return it.kind == Closed })
}
