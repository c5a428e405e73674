package gossip

import (
	"encoding/binary"
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
	hasProof
	hasRecord
	hasBirths
	hasSize
	hasPadding
)

// layouts are the bodies of all types but Heartbeat.
var layouts = [...][]field{
	Hello:            {hasFrom, hasTarget, hasNeed, hasTag, hasRecord},
	Welcome:          {hasFrom, hasNeed, hasTag, hasRecord},
	Refuse:           {hasReason, hasAboutVersion, hasRecord},
	Base:             {hasFlags, hasAlives, hasSuspicions},
	Update:           {hasLeaves, hasAlives, hasSuspicions},
	Needs:            {hasNeed},
	Watchers:         {hasWatchers},
	Dispute:          {hasDead},
	Goodbye:          {},
	Wants:            {hasDead},
	Births:           {hasBirths},
	Probe:            {hasFrom, hasTarget, hasAboutVersion, hasNonce},
	Echo:             {hasAbout, hasNonce, hasProof},
	Relay:            {hasFrom, hasAbout, hasNonce},
	Nack:             {hasAbout, hasNonce, hasProof},
	DiscoveryRequest: {hasFrom, hasNonce, hasFlags, hasPadding},
	DiscoveryReply:   {hasFrom, hasNonce, hasFlags, hasAboutVersion, hasSize, hasRecord, hasAlives},
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
		for i := range cursor.List(c, &p.Leaves, 8+2+1+1) {
			d := &p.Leaves[i]
			d.Reference.fields(c)
			if c.Bits(&d.Exit.Given); d.Exit.Given {
				cursor.Uint8(c, &d.Exit.Code)
			}
			proof(c, &d.Proof)
		}
	case hasAlives:
		for i := range cursor.List(c, &p.Alives, 8+2+2+1) {
			p.Alives[i].fields(c)
		}
	case hasSuspicions:
		for i := range cursor.List(c, &p.Suspicions, 8+8+2+1) {
			cursor.Uint64(c, &p.Suspicions[i].Reporter)
			p.Suspicions[i].Suspect.fields(c)
			proof(c, &p.Suspicions[i].Proof)
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
	case hasProof:
		proof(c, &p.Proof)
	case hasRecord:
		record(c, &p.Record)
	case hasBirths:
		for i := range cursor.List(c, &p.Births, 8+1+2) {
			b := &p.Births[i]
			cursor.Uint64(c, &b.Key)
			cursor.Varint(c, &b.Incarnation, math.MaxUint64)
			record(c, &b.Record)
		}
	case hasSize:
		cursor.Varint(c, &p.Size, math.MaxUint32)
	case hasPadding:
		c.Zeros(max(0, minRequest-headerSize-p.From.length()-4-1))
	}
}

// proof is a signature, or none.
func proof(c *cursor.Cursor, p *[]byte) {
	n := len(*p)
	cursor.Uint8(c, &n)
	c.Bad = c.Bad || n != 0 && n != SignatureSize
	if !c.Writes && c.Bad {
		n = 0
	}
	c.Part(p, n)
}

func record(c *cursor.Cursor, p *[]byte) {
	n := len(*p)
	cursor.Uint16(c, &n)
	c.Bad = c.Bad || n > MaxBirth
	c.Part(p, n)
}

// length returns the size of an entry as it is written.
func (e *Entry) length() int {
	b := binary.AppendUvarint(make([]byte, 0, maxVersion), e.Version.Incarnation)
	return 8 + len(binary.AppendUvarint(b, uint64(e.Version.Minor))) + 1 + len(e.ID) + 1 + len(e.Proof)
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
	proof(c, &e.Proof)
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
