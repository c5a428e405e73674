package gossip

import (
	"math"

	"github.com/tributary-fabric/tributary/internal/wire/cursor"
)

// field is what the body of a type consists of, in this order.
type field uint8

const (
	hasFrom field = iota
	hasTarget
	hasNeed
	hasTag
	hasReason
	hasAbout
	hasAboutVersion
	hasNonce
	hasFlags
	hasLeaves
	hasAlives
	hasSuspicions
	hasDead
	hasWatchers
	hasBody
)

// layouts are the bodies of all types but Heartbeat.
var layouts = [...][]field{
	Hello:            {hasFrom, hasTarget, hasNeed, hasTag},
	Welcome:          {hasFrom, hasNeed, hasTag},
	Refuse:           {hasReason, hasAboutVersion},
	Base:             {hasFlags, hasAlives, hasSuspicions},
	Update:           {hasLeaves, hasAlives, hasSuspicions},
	Needs:            {hasNeed},
	Watchers:         {hasWatchers},
	Dispute:          {hasDead},
	Goodbye:          {},
	Probe:            {hasFrom, hasTarget, hasAboutVersion, hasNonce},
	Echo:             {hasAbout, hasNonce},
	Relay:            {hasFrom, hasAbout, hasNonce},
	Nack:             {hasAbout, hasNonce},
	DiscoveryRequest: {hasFrom, hasNonce, hasFlags},
	DiscoveryReply:   {hasFrom, hasNonce, hasFlags, hasLeaves, hasAlives},
	Attributes:       {hasBody},
	Hierarchy:        {hasBody},
}

// layout returns the layout of a type, false if it has none.
func layout(t Type) ([]field, bool) {
	if int(t) >= len(layouts) || layouts[t] == nil {
		return nil, false
	}
	return layouts[t], true
}

// flagsOf are the flags that a type may have: of Boot, Stealth and Answer, the
// first the lowest.
var flagsOf = map[Type]byte{Base: 1 << 2, DiscoveryRequest: 1<<0 | 1<<1, DiscoveryReply: 1 << 0}

func (p *Packet) field(c *cursor.Cursor, f field) {
	switch f {
	case hasFrom:
		p.From.fields(c)
	case hasTarget:
		cursor.Uint64(c, &p.Target)
	case hasNeed:
		cursor.Uint8(c, &p.Need)
		c.Bad = c.Bad || p.Need&^allNeeds != 0
	case hasTag:
		cursor.Uint32(c, &p.Tag)
	case hasReason:
		cursor.Uint8(c, &p.Reason)
		c.Bad = c.Bad || p.Reason == 0 || p.Reason > lastReason
	case hasAbout:
		p.About.fields(c)
	case hasAboutVersion:
		p.About.Version.fields(c)
	case hasNonce:
		cursor.Uint32(c, &p.Nonce)
	case hasFlags:
		known := flagsOf[p.Type]
		c.Bits(&p.Boot, &p.Stealth, &p.Answer)
		c.Bad = c.Bad || p.Boot && known&1 == 0 || p.Stealth && known&2 == 0 || p.Answer && known&4 == 0
	case hasLeaves:
		for i := range cursor.List(c, &p.Leaves, 8+2+1) {
			d := &p.Leaves[i]
			d.Reference.fields(c)
			if c.Bits(&d.Exit.Given); d.Exit.Given {
				cursor.Uint8(c, &d.Exit.Code)
			}
		}
	case hasAlives:
		for i := range cursor.List(c, &p.Alives, 8+2+2) {
			p.Alives[i].fields(c)
		}
	case hasSuspicions:
		for i := range cursor.List(c, &p.Suspicions, 8+8+2) {
			cursor.Uint64(c, &p.Suspicions[i].Reporter)
			p.Suspicions[i].Suspect.fields(c)
		}
	case hasDead:
		for i := range cursor.List(c, &p.Dead, 8+2) {
			p.Dead[i].fields(c)
		}
	case hasWatchers:
		for i := range cursor.List(c, &p.Watchers, 8) {
			cursor.Uint64(c, &p.Watchers[i])
		}
	case hasBody:
		c.Part(&p.Body, len(c.B))
	}
}

func (v *Version) fields(c *cursor.Cursor) {
	cursor.Varint(c, &v.Incarnation, math.MaxUint64)
	cursor.Varint(c, &v.Minor, MaxMinor)
}

func (e *Entry) fields(c *cursor.Cursor) {
	cursor.Uint64(c, &e.Key)
	e.Version.fields(c)
	n := len(e.ID)
	cursor.Uint8(c, &n)
	c.Part(&e.ID, n)
	c.Bad = c.Bad || n == 0
}

func (r *Reference) fields(c *cursor.Cursor) {
	cursor.Uint64(c, &r.Key)
	r.Version.fields(c)
}

func (p *Pulse) fields(c *cursor.Cursor) {
	cursor.Uint32(c, &p.Tag)
	cursor.Uint32(c, &p.Sequence)
	cursor.Uint8(c, &p.Turns)
	cursor.Uint16(c, &p.View)
}
