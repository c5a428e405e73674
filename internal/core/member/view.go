package member

import (
	"cmp"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// state is what a core holds of a node. A node is in the view or in the
// history, never in both.
type state uint8

const (
	unknown state = iota
	alive         // in the view
	gone          // in the history
)

// node is what a core knows of an ID; 32 bytes.
type node struct {
	version Version // in the view, or when it was removed
	deaths  uint32
	place   int32 // gone: in the history
	state   state
	fresh   bool // alive: in the update that is being gathered
}

// past is a line of the history.
type past struct {
	node Index
	at   core.Time // of its removal
}

// view is the view and the history. No index is in both.
type view struct {
	nodes   []node  // by Index
	ring    []Index // who is alive, by key
	history []past
	lives   core.Table[Index] // who is alive, by Life
	digest  uint64            // of ring with versions: the same for equal views
	census  uint64            // of ring: all lives, by exclusive or
	base    uint32            // deaths of who is met for the first time, above those of all forgotten
}

func (w *view) has(i Index) bool { return int(i) < len(w.nodes) && w.nodes[i].state == alive }

// at returns what is known of i.
func (w *view) at(dir *Directory, i Index) *node {
	if n := dir.Len(); int(i) >= len(w.nodes) {
		if n > cap(w.nodes) {
			w.nodes = append(make([]node, 0, n+n/16), w.nodes...)
		}
		w.nodes = w.nodes[:n]
	}
	return &w.nodes[i]
}

// place returns where a key is, or would be, on the ring.
func (w *view) place(dir *Directory, key gossip.Key) int {
	at, _ := slices.BinarySearchFunc(w.ring, key, func(i Index, key gossip.Key) int { return cmp.Compare(dir.Key(i), key) })
	return at
}

// enter puts i into the view.
func (w *view) enter(c *Core, i Index, v Version) {
	n := w.at(c.dir, i)
	switch n.state {
	case gone:
		w.forget(n)
	case unknown:
		c.dir.Hold(i)
		n.deaths = w.base
	}
	n.state, n.version = alive, v
	w.ring = slices.Insert(w.ring, w.place(c.dir, c.dir.Key(i)), i)
	w.count(c.dir, i, v)
	w.lives.Add(i, w.numbers(c.dir))
	c.snapshot = nil
}

// leave takes i, which is alive, out of the view and into the history.
func (w *view) leave(c *Core, i Index, v Version) {
	n := &w.nodes[i]
	w.lives.Remove(i, w.numbers(c.dir))
	w.count(c.dir, i, n.version)
	at := w.place(c.dir, c.dir.Key(i))
	w.ring = slices.Delete(w.ring, at, at+1)
	n.state, n.version, n.fresh = gone, v, false
	n.deaths++
	n.place = int32(len(w.history))
	w.history = append(w.history, past{i, c.now})
	c.snapshot = nil
}

// renew gives i, which is alive, a newer version.
func (w *view) renew(c *Core, i Index, v Version) {
	n := &w.nodes[i]
	reborn := n.version.Incarnation != v.Incarnation
	if reborn {
		w.lives.Remove(i, w.numbers(c.dir))
		n.deaths++
	}
	w.count(c.dir, i, n.version)
	n.version = v
	w.count(c.dir, i, v)
	if reborn {
		w.lives.Add(i, w.numbers(c.dir))
	}
	c.snapshot = nil
}

// forget takes a node out of the history.
func (w *view) forget(n *node) {
	last := len(w.history) - 1
	w.history[n.place] = w.history[last]
	w.nodes[w.history[n.place].node].place = n.place
	w.history = w.history[:last]
}

// prune removes from a history that is too large who has been gone for long.
func (w *view) prune(c *Core) {
	if len(w.history) <= c.cfg.History {
		return
	}
	for k := 0; k < len(w.history); {
		p := w.history[k]
		if c.now.Sub(p.at) <= c.cfg.Remember {
			k++
			continue
		}
		n := &w.nodes[p.node]
		w.base = max(w.base, n.deaths)
		w.forget(n)
		*n = node{}
		delete(c.births, p.node)
		c.dir.Release(p.node)
	}
}

// count adds i at v to the digest, or takes it away.
func (w *view) count(dir *Directory, i Index, v Version) {
	life := dir.Key(i).Life(v.Incarnation)
	w.census ^= uint64(life)
	w.digest ^= uint64(gossip.Key(life).Life(uint64(v.Minor)))
}

func (w *view) life(dir *Directory, i Index) gossip.Life {
	return dir.Key(i).Life(w.nodes[i].version.Incarnation)
}

// numbers returns what lives are found by.
func (w *view) numbers(dir *Directory) func(Index) uint64 {
	return func(i Index) uint64 { return uint64(w.life(dir, i)) }
}

func (w *view) findLife(dir *Directory, life gossip.Life) (Index, bool) {
	return w.lives.Find(uint64(life), w.numbers(dir))
}
