package sim

import (
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// outside panics where a step does what only a world may do between two events.
func (w *World) outside() {
	if w.stepping {
		panic("sim: faults within a Step; schedule them with World.After")
	}
}

// Crash ends a node's life. What it had not taken is lost, and of what it had
// sent over connections and the control plane a random suffix; its datagrams
// still arrive. Nodes connected to it are notified after Config.Death.
func (w *World) Crash(id NodeID) {
	w.outside()
	n := &w.nodes[id]
	if n.node == nil {
		return
	}
	w.trace(entry{what: crashed, node: id, peer: nobody})
	for i, d := range n.inbox {
		if path := n.paths[i]; path >= 0 {
			w.lose(&w.paths[path], d.Kind, d.Bytes, d.Value)
		}
		n.inbox[i] = Delivery{}
	}
	n.node, n.inbox, n.paths = nil, n.inbox[:0], n.paths[:0]
	n.deadline, n.wakeAt, n.timers = core.Never, core.Never, n.timers[:0]
	for _, path := range n.peers {
		w.onPeerLost(path)
	}
}

// Restart begins a node's next life as n, without connections. It crashes it
// first if it is running.
func (w *World) Restart(id NodeID, n Node) {
	w.Crash(id)
	w.trace(entry{what: restarted, node: id, peer: nobody})
	w.start(id, n)
}

// Pause stops a node for d, as a scheduler or a stopped process would: what
// arrives waits, deadlines pass.
func (w *World) Pause(id NodeID, d time.Duration) {
	w.outside()
	w.trace(entry{what: paused, node: id, peer: nobody})
	w.nodes[id].paused = max(w.nodes[id].paused, w.now.Add(d))
}

// Cut cuts all ways between two nodes.
func (w *World) Cut(a, b NodeID) {
	w.trace(entry{what: cut, node: a, peer: b})
	w.recut(func() { w.setCut(a, b, true) })
}

// Repair repairs what Cut has cut.
func (w *World) Repair(a, b NodeID) {
	w.trace(entry{what: repaired, node: a, peer: b})
	w.recut(func() { w.setCut(a, b, false) })
}

func (w *World) setCut(a, b NodeID, cut bool) {
	p := &w.paths[w.path(a, b)]
	p.cut, w.paths[p.back].cut = cut, cut
}

// Partition cuts all ways between nodes of different groups; nodes in none of
// the groups are one more. It replaces the partition before.
func (w *World) Partition(groups ...[]NodeID) {
	w.trace(entry{what: partitioned, node: nobody, peer: nobody})
	w.recut(func() {
		for i := range w.nodes {
			w.nodes[i].side = 0
		}
		for i, group := range groups {
			for _, id := range group {
				w.nodes[id].side = int32(i + 1)
			}
		}
	})
}

// Heal repairs all cuts, and ends the partition.
func (w *World) Heal() {
	w.trace(entry{what: healed, node: nobody, peer: nobody})
	w.recut(func() {
		for i := range w.nodes {
			w.nodes[i].side = 0
		}
		for i := range w.paths {
			w.paths[i].cut = false
		}
	})
}

// recut changes cuts. Patience with a connection begins when it is cut, and
// ends when it is repaired.
func (w *World) recut(change func()) {
	w.outside()
	was := make([]bool, len(w.conns))
	for i, c := range w.conns {
		was[i] = w.blocked(&w.paths[c.paths[0]])
	}
	change()
	for i, c := range w.conns {
		if is := w.blocked(&w.paths[c.paths[0]]); is != was[i] && c.state == up {
			c.token++
			if is {
				w.patience(c)
			}
		}
	}
	w.resume()
}

// Peers returns the nodes to which a node has a connection, reported or not, in the
// order in which it first had to do with them.
func (w *World) Peers(id NodeID) []NodeID {
	var peers []NodeID
	for _, i := range w.nodes[id].peers {
		if p := &w.paths[i]; p.conn != nil && p.conn.state == up {
			peers = append(peers, p.to)
		}
	}
	return peers
}
