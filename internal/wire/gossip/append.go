package gossip

import "encoding/binary"

// Append appends p, header included, not sealed. p must be what Decode can read:
// IDs of MaxID bytes at most, fields that its type has.
func (p *Packet) Append(b []byte) []byte {
	b = append(b, version<<4, byte(p.Type))
	fields, _ := layout(p.Type)
	for _, f := range fields {
		b = p.appendField(b, f)
	}
	return b
}

// version of the packets. Those of version 1 have the same form, but all their
// heartbeats carry the same part of a digest.
const version = 2

func (p *Packet) appendField(b []byte, f field) []byte {
	switch f {
	case hasFrom:
		b = p.From.append(b)
	case hasTarget:
		b = binary.BigEndian.AppendUint64(b, uint64(p.Target))
	case hasNeed:
		b = append(b, byte(p.Need))
	case hasTag:
		b = binary.BigEndian.AppendUint32(b, p.Tag)
	case hasReason:
		b = append(b, byte(p.Reason))
	case hasAbout:
		b = p.About.append(b)
	case hasAboutVersion:
		b = p.About.Version.append(b)
	case hasNonce:
		b = binary.BigEndian.AppendUint32(b, p.Nonce)
	case hasFlags:
		b = append(b, p.flags())
	case hasLeaves:
		b = appendList(b, p.Leaves, Departure.append)
	case hasAlives:
		b = appendList(b, p.Alives, Entry.append)
	case hasSuspicions:
		b = appendList(b, p.Suspicions, Suspicion.append)
	case hasDead:
		b = appendList(b, p.Dead, Reference.append)
	case hasWatchers:
		b = appendList(b, p.Watchers, func(k Key, b []byte) []byte { return binary.BigEndian.AppendUint64(b, uint64(k)) })
	case hasBody:
		b = append(b, p.Body...)
	}
	return b
}

func (p *Packet) flags() (flags byte) {
	if p.Boot {
		flags |= flagBoot
	}
	if p.Stealth {
		flags |= flagStealth
	}
	if p.Answer {
		flags |= flagAnswer
	}
	return flags
}

func appendList[T any](b []byte, list []T, one func(T, []byte) []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for i := range list {
		b = one(list[i], b)
	}
	return b
}

func (v Version) append(b []byte) []byte {
	b = binary.AppendUvarint(b, v.Incarnation)
	return binary.AppendUvarint(b, uint64(v.Minor))
}

func (e Entry) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(e.Key))
	b = e.Version.append(b)
	b = append(b, byte(len(e.ID)))
	return append(b, e.ID...)
}

func (r Reference) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(r.Key))
	return r.Version.append(b)
}

func (d Departure) append(b []byte) []byte {
	b = d.Reference.append(b)
	if !d.Exit.Given {
		return append(b, 0)
	}
	return append(b, 1, d.Exit.Code)
}

func (s Suspicion) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(s.Reporter))
	return s.Suspect.append(b)
}

// Append appends p as a packet, not sealed.
func (p Pulse) Append(b []byte) []byte {
	b = append(b, version<<4, byte(Heartbeat))
	b = binary.BigEndian.AppendUint32(b, p.Tag)
	b = binary.BigEndian.AppendUint32(b, p.Sequence)
	b = append(b, p.Turns)
	return binary.BigEndian.AppendUint16(b, p.View)
}

// pulseSize is the size of a heartbeat that is not sealed.
const pulseSize = headerSize + 4 + 4 + 1 + 2

// Sizes of what lists consist of, at most.
const (
	maxVersion   = binary.MaxVarintLen64 + binary.MaxVarintLen32
	maxReference = 8 + maxVersion
	maxDeparture = maxReference + 2
	maxSuspicion = 8 + maxReference
	keySize      = 8
	maxCount     = binary.MaxVarintLen32
)

func (e *Entry) size() int { return 8 + maxVersion + 1 + len(e.ID) }

// Pieces returns p in packets of limit bytes at most, a seal of any kind
// included: p itself if it fits. Each piece has the fields of p, and a part of
// its lists: leaves first, suspicions last. The last one alone asks for an answer.
// A Body is not cut.
func (p *Packet) Pieces(limit int) []Packet {
	room := limit - headerSize - maxSeal - p.From.size() - 16 - 5*maxCount
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
