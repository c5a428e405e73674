package epoch

import (
	"maps"

	"github.com/tributary-fabric/tributary/internal/wire"
)

// settled is how far all results are with a member, a subtree, or all members. For
// all members that only rises. For fewer, a change of epoch may take it back to the
// base of its decision: what a member had finished, and no sink, is reduced again.
type settled struct {
	before  uint32 // every result before this number
	isKnown bool
}

// raise notes that every result before n is there, and reports whether that is news.
func (s *settled) raise(n uint32) bool {
	if s.isKnown && !wire.Newer(n, s.before) {
		return false
	}
	s.before, s.isKnown = n, true
	return true
}

// lower notes that an epoch begins at number n.
func (s *settled) lower(n uint32) {
	if s.isKnown && wire.Newer(s.before, n) {
		s.before = n
	}
}

// unsettle takes back what was said in the epochs before one that begins at number
// n. Between a report and its decision nothing is said, so nothing of these epochs
// comes later.
func (c *Core) unsettle(n uint32) {
	c.rested.lower(n)
	c.beneath.lower(n)
	for i := range c.children {
		c.children[i].settled.lower(n)
	}
}

// farApart is how far numbers may be from each other that serial arithmetic is to
// compare.
const farApart = 1 << 30

// settle reports to the parent, or to everybody, how far the subtree has all results, if
// that has become more. It is said when members rest: so it costs a busy group
// nothing, and an idle one a frame up and one down on each connection.
func (c *Core) settle() {
	if c.phase != running {
		return
	}
	least := c.rested
	for i := range c.children {
		k := &c.children[i].settled
		if !least.isKnown || !k.isKnown {
			return
		}
		if d := int32(least.before - k.before); d > farApart || d < -farApart {
			return // one of them is of long ago
		}
		if wire.Newer(least.before, k.before) {
			least = *k
		}
	}
	if !least.isKnown || !c.beneath.raise(least.before) {
		return
	}
	if c.cfg.Parent == NoParent {
		c.settledAll(least.before)
		return
	}
	c.sendUp((&wire.Settled{Number: least.before}).Append(nil))
}

// settledAll passes on what all members have, of which nobody will ask any more.
func (c *Core) settledAll(n uint32) {
	if c.phase != left && c.all.raise(n) {
		c.sendDown((&wire.Settled{Number: n}).Append(nil))
		c.member.Forget(n)
		maps.DeleteFunc(c.passing, func(k uint32, _ []byte) bool { return wire.Newer(n, k) })
	}
}
