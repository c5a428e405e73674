package member

import (
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// Self returns the core's own node and version.
func (c *Core) Self() Entry { return c.me() }

// Directory returns the directory that the core's indices are of.
func (c *Core) Directory() *Directory { return c.dir }

// View returns who is in the view, the core itself included, by their places on
// the ring. It is valid until the next step and not to be changed.
func (c *Core) View() []Index { return c.view.ring }

// Size returns the number of members in the view.
func (c *Core) Size() int { return len(c.view.ring) }

// Has reports whether a node is in the view.
func (c *Core) Has(i Index) bool { return c.view.has(i) }

// Version returns the version of a node that is in the view, or when it was
// removed; the zero Version if neither is known.
func (c *Core) Version(i Index) Version {
	if int(i) >= len(c.view.nodes) {
		return Version{}
	}
	return c.view.nodes[i].version
}

// Digest returns a number that is equal for equal views, and for others as a
// rule is not.
func (c *Core) Digest() uint64 { return c.view.digest }

// Census returns the exclusive or of the lives of all members of the view.
func (c *Core) Census() gossip.Life { return gossip.Life(c.view.census) }

// Life returns the life of a node that is in the view.
func (c *Core) Life(i Index) gossip.Life { return c.view.life(c.dir, i) }

// FindLife returns who lives a life, if it is in the view.
func (c *Core) FindLife(life gossip.Life) (Index, bool) { return c.view.findLife(c.dir, life) }

// Deaths returns how often a node went from alive to dead in this core's view,
// a new incarnation included. It is not reported to others. Whoever finds it changed
// knows that the node was away or has restarted. Nodes that are met for the first
// time begin above all that were forgotten with the history.
func (c *Core) Deaths(i Index) uint32 {
	if int(i) >= len(c.view.nodes) || c.view.nodes[i].state == unknown {
		return c.view.base
	}
	return c.view.nodes[i].deaths
}

// Former is a node of the history.
type Former struct {
	Entry
	At core.Time // when it was removed
}

// History appends the nodes of the history.
func (c *Core) History(to []Former) []Former {
	for _, p := range c.view.history {
		to = append(to, Former{Entry{Node: p.node, Version: c.view.nodes[p.node].version}, p.at})
	}
	return to
}

// Suspicions returns the suspicions of members of the view, by suspect. They are
// valid until the next step and not to be changed.
func (c *Core) Suspicions() []Suspicion { return c.reports }

// Peer is a neighbour.
type Peer struct {
	Node     Index
	Link     Link
	Ours     gossip.Need // what the core needs the link for
	Theirs   gossip.Need
	Watches  bool // it watches the core
	Watching bool // the core watches it
	Probed   bool // and has not heard from it in time
}

// Neighbours appends the neighbours.
func (c *Core) Neighbours(to []Peer) []Peer {
	for i := range c.links {
		l := &c.links[i]
		if l.state != standing {
			continue
		}
		to = append(to, Peer{
			Node: l.peer, Link: l.number, Ours: l.mine, Theirs: l.theirs,
			Watches: slices.Contains(c.beats.watchers, l.peer), Watching: l.duty == watching, Probed: l.probed,
		})
	}
	return to
}

// Health returns the score of local health: 0 is well.
func (c *Core) Health() int { return c.health.score }
