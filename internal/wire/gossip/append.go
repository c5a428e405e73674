package gossip

import (
	"encoding/binary"

	"github.com/tributary-fabric/tributary/internal/wire/cursor"
)

// Append appends p, header included, not sealed. p must be what Decode can read:
// IDs of MaxID bytes at most, fields that its type has.
func (p *Packet) Append(b []byte) []byte {
	c := cursor.Cursor{B: append(b, version<<4, byte(p.Type)), Writes: true}
	fields, _ := layout(p.Type)
	for _, f := range fields {
		p.field(&c, f)
	}
	return c.B
}

// version of the packets. Those of version 2 have no proofs.
const version = 3

// Append appends p as a packet, not sealed.
func (p Pulse) Append(b []byte) []byte {
	c := cursor.Cursor{B: append(b, version<<4, byte(Heartbeat)), Writes: true}
	p.fields(&c)
	return c.B
}

// pulseSize is the size of a heartbeat that is not sealed.
const pulseSize = headerSize + 4 + 4 + 1 + 2

// Sizes of what lists consist of, at most.
const (
	maxVersion   = binary.MaxVarintLen64 + binary.MaxVarintLen32
	maxReference = 8 + maxVersion
	maxProof     = 1 + SignatureSize
	maxDeparture = maxReference + 2 + maxProof
	maxSuspicion = 8 + maxReference + maxProof
	keySize      = 8
	maxCount     = binary.MaxVarintLen32
)

func (e *Entry) size() int { return 8 + maxVersion + 1 + len(e.ID) + 1 + len(e.Proof) }

func (b *Birth) size() int { return 8 + binary.MaxVarintLen64 + 2 + len(b.Record) }

// Pieces returns p in packets of limit bytes at most, a seal of any kind
// included: p itself if it fits. Each piece has the fields of p, and a part of
// its lists: leaves first, suspicions last. The last one alone asks for an answer.
// A Body is not cut.
func (p *Packet) Pieces(limit int) []Packet {
	room := limit - headerSize - maxSeal - p.From.size() - len(p.Record) - maxProof - 16 - 6*maxCount
	if p.listed() <= room {
		return []Packet{*p}
	}
	var pieces []Packet
	rest := *p
	for first := true; first || rest.listed() > 0; first = false {
		piece, left := rest, room
		piece.Leaves = takeList(&rest.Leaves, &left, func(*Departure) int { return maxDeparture })
		piece.Alives = takeList(&rest.Alives, &left, (*Entry).size)
		piece.Suspicions = takeList(&rest.Suspicions, &left, func(*Suspicion) int { return maxSuspicion })
		piece.Dead = takeList(&rest.Dead, &left, func(*Reference) int { return maxReference })
		piece.Births = takeList(&rest.Births, &left, (*Birth).size)
		piece.Watchers = takeList(&rest.Watchers, &left, func(*Key) int { return keySize })
		piece.Answer = p.Answer && rest.listed() == 0
		pieces = append(pieces, piece)
	}
	return pieces
}

// listed returns how many bytes the lists take at most.
func (p *Packet) listed() int {
	n := len(p.Leaves)*maxDeparture + len(p.Suspicions)*maxSuspicion + len(p.Dead)*maxReference + len(p.Watchers)*keySize
	for i := range p.Alives {
		n += p.Alives[i].size()
	}
	for i := range p.Births {
		n += p.Births[i].size()
	}
	return n
}

// takeList takes as much off the front of a list as there is room for; once
// something did not fit there is no more room.
func takeList[T any](list *[]T, room *int, size func(*T) int) []T {
	n := 0
	for n < len(*list) {
		s := size(&(*list)[n])
		if s > *room {
			*room = 0
			break
		}
		*room -= s
		n++
	}
	taken := (*list)[:n:n]
	*list = (*list)[n:]
	return taken
}
