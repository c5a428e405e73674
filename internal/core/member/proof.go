package member

import (
	"encoding/binary"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// Signature is what a life says for its statement to be its own.
type Signature [gossip.SignatureSize]byte

// LifeKey checks the signatures of a life.
type LifeKey [32]byte

// Identity proves what a node says, and checks what others say. What its methods find depends
// on their arguments and on the Identity alone until a Recheck; they may remember what they
// have checked.
type Identity interface {
	// Birth returns the record of the node's own life that was signed last.
	Birth() []byte
	// Sign signs a statement by the key of this life.
	Sign(statement []byte) *Signature
	// Verify reports whether a record proves that a node has begun a life, and returns
	// the key of that.
	Verify(id gossip.ID, incarnation uint64, record []byte) (LifeKey, bool)
	// Later reports whether a record is of the life of another one, and says of itself that
	// it was signed later.
	Later(record, than []byte) bool
	// Check reports whether a life has signed a statement.
	Check(key LifeKey, statement []byte, s *Signature) bool
}

// birth is a life that is proven.
type birth struct {
	incarnation uint64
	key         LifeKey
	record      []byte
	minor       *Signature // of the minor that is known; nil: 1, which the birth proves
	kept        core.Time  // until then no later record takes its place
}

// The statements of a life. Its key belongs to one life of one node in one zone.
const (
	saysMinor  = "tributary member minor"
	saysLeave  = "tributary member leaves"
	suspects   = "tributary member suspects"
	saysSilent = "tributary member cannot reach"
)

func statement(what string, numbers ...uint64) []byte {
	b := append(make([]byte, 0, 64), what...)
	for _, n := range numbers {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func (d *Departure) statement() []byte {
	exit := uint64(d.Exit.Code)
	if d.Exit.Given {
		exit |= 1 << 8
	}
	return statement(saysLeave, uint64(d.Version.Minor), exit)
}

func (c *Core) suspicion(suspect Index, v Version) []byte {
	return statement(suspects, uint64(c.dir.Key(suspect)), v.Incarnation, uint64(v.Minor))
}

// silence is what a Nack says: that the sender has no answer from about, for which it was
// asked with a number.
func (c *Core) silence(nonce uint32, asker, about Index) []byte {
	return statement(saysSilent, uint64(nonce), uint64(c.dir.Key(asker)), uint64(c.dir.Key(about)))
}

// proves reports whether the core takes only what is proven.
func (c *Core) proves() bool { return c.cfg.Identity != nil }

// sign returns the core's own signature; nil: nothing is proven.
func (c *Core) sign(statement []byte) *Signature {
	if !c.proves() {
		return nil
	}
	return c.cfg.Identity.Sign(statement)
}

// says reports whether a node has signed a statement, in the life that is known.
func (c *Core) says(i Index, statement []byte, s *Signature) bool {
	if !c.proves() {
		return true
	}
	b := c.births[i]
	return b != nil && s != nil && c.cfg.Identity.Check(b.key, statement, s)
}

// entry returns a node as it is known, with its proof.
func (c *Core) entry(i Index) Entry {
	e := Entry{Node: i, Version: c.view.nodes[i].version}
	if b := c.births[i]; b != nil {
		e.Proof = b.minor
	}
	return e
}

// accuse returns a suspicion of the core's own.
func (c *Core) accuse(i Index, v Version) Suspicion {
	s := Suspicion{Reporter: c.key, Suspect: i, Version: v}
	if c.proves() {
		s.Proof = c.sign(c.suspicion(i, v))
	}
	return s
}

// attested reports whether a suspicion is of the reporter that it names.
func (c *Core) attested(s *Suspicion) bool {
	if !c.proves() {
		return true
	}
	reporter, ok := c.dir.Find(s.Reporter)
	return ok && c.says(reporter, c.suspicion(s.Suspect, s.Version), s.Proof)
}

// proven reports whether news of another node is. Of a life that is, a minor that is not
// counts as 1. Who spoke of a life that is not proven is asked for its birth.
func (c *Core) proven(e *Entry) bool {
	if !c.proves() {
		return true
	}
	b := c.births[e.Node]
	if b == nil || b.incarnation != e.Version.Incarnation {
		c.miss(*e)
		return false
	}
	if e.Version.Minor > 1 && !c.says(e.Node, statement(saysMinor, uint64(e.Version.Minor)), e.Proof) {
		e.Version.Minor = 1
	}
	if e.Version.Minor <= 1 {
		e.Version.Minor, e.Proof = 1, nil
	}
	return c.Version(e.Node).Before(e.Version)
}

// acquaint takes the record of a node's birth, and reports whether it proves a life that
// is later than the one known. Another life of the core's own node ends the core.
func (c *Core) acquaint(i Index, incarnation uint64, record []byte) bool {
	if !c.proves() || len(record) == 0 {
		return false
	}
	if b := c.births[i]; b != nil && b.incarnation >= incarnation {
		c.renewed(i, incarnation, record)
		return false
	}
	key, ok := c.cfg.Identity.Verify(c.dir.ID(i), incarnation, record)
	switch {
	case !ok:
		return false
	case i == c.self:
		c.supersede(Version{Incarnation: incarnation, Minor: 1})
		return false
	}
	c.births[i] = &birth{incarnation: incarnation, key: key, record: record}
	delete(c.unproven, i)
	return true
}

// record returns that of the birth of a life; nil: it is not known.
func (c *Core) record(i Index, incarnation uint64) []byte {
	if b := c.births[i]; b != nil && b.incarnation == incarnation {
		return b.record
	}
	return nil
}

// serve answers a neighbour that asks for births.
func (c *Core) serve(l *link, m *Message) {
	answer := &Message{Type: gossip.Births}
	for _, e := range m.Alives {
		record := c.record(e.Node, e.Version.Incarnation)
		if _, isUnproven := c.unproven[e.Node]; isUnproven || record == nil {
			continue
		}
		if len(answer.Births) == birthsAtOnce {
			c.send(l, answer)
			answer = &Message{Type: gossip.Births}
		}
		answer.Births = append(answer.Births, Birth{e.Node, e.Version.Incarnation, record})
	}
	c.send(l, answer)
}

// birthsAtOnce is how many births a message has, so that who gets many takes other
// messages between them.
const birthsAtOnce = 64

// beyond reports whether a version of a node is later than what it has proven, and so said
// by who cannot know.
func (c *Core) beyond(i Index, v Version) bool {
	return c.proves() && c.Version(i).Before(v)
}

// provenLeave reports whether a node has said that it leaves. Where its birth is not known
// that waits for it.
func (c *Core) provenLeave(d *Departure) bool {
	if !c.proves() {
		return true
	}
	if b := c.births[d.Node]; b != nil && b.incarnation >= d.Version.Incarnation {
		return b.incarnation == d.Version.Incarnation && c.says(d.Node, d.statement(), d.Proof)
	}
	k := c.miss(Entry{Node: d.Node, Version: Version{Incarnation: d.Version.Incarnation, Minor: 1}})
	if k != nil && len(k.left) < maxLefts && !slices.ContainsFunc(k.left, func(s leaveSaid) bool { return s.by == c.source }) {
		k.left = append(k.left, leaveSaid{c.source, *d})
	}
	return false
}
