package gossip

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tributary-fabric/tributary/internal/wire/cursor"
)

// Errors of Decode and DecodePulse.
var (
	ErrVersion   = errors.New("gossip: a packet of another version")
	ErrMalformed = errors.New("gossip: a malformed packet")
)

// TypeOf returns the type of a packet that is not opened yet.
func TypeOf(b []byte) (Type, error) {
	switch {
	case len(b) < headerSize:
		return 0, fmt.Errorf("%w: %d bytes", ErrMalformed, len(b))
	case b[0]>>4 != version:
		return 0, fmt.Errorf("%w: %d, want %d", ErrVersion, b[0]>>4, version)
	}
	return Type(b[1] &^ encrypted), nil
}

// Decode reads a packet that is not sealed into p, whose lists' memory it uses
// again. IDs and Body are within b.
func (p *Packet) Decode(b []byte) error {
	t, err := TypeOf(b)
	if err != nil {
		return err
	}
	fields, ok := layout(t)
	if !ok || b[0]&0xf != 0 || b[1]&encrypted != 0 {
		return fmt.Errorf("%w: %d bytes of type %d", ErrMalformed, len(b), b[1])
	}
	*p = Packet{
		Type: t, Leaves: p.Leaves[:0], Alives: p.Alives[:0], Suspicions: p.Suspicions[:0],
		Dead: p.Dead[:0], Watchers: p.Watchers[:0],
	}
	r := reader{cursor.Cursor{B: b[headerSize:]}}
	for _, f := range fields {
		p.read(&r, f)
	}
	if r.Bad || len(r.B) > 0 {
		return fmt.Errorf("%w: %d bytes of type %v, %d left", ErrMalformed, len(b), t, len(r.B))
	}
	return nil
}

func (p *Packet) read(r *reader, f field) {
	switch f {
	case hasFrom:
		p.From = r.entry()
	case hasTarget:
		p.Target = r.key()
	case hasNeed:
		p.Need = Need(r.Byte())
		r.Bad = r.Bad || p.Need&^allNeeds != 0
	case hasTag:
		p.Tag = r.Uint32()
	case hasReason:
		p.Reason = Reason(r.Byte())
		r.Bad = r.Bad || p.Reason == 0 || p.Reason > lastReason
	case hasAbout:
		p.About = r.reference()
	case hasAboutVersion:
		p.About.Version = r.version()
	case hasNonce:
		p.Nonce = r.Uint32()
	case hasFlags:
		p.readFlags(r.Byte(), r)
	case hasLeaves:
		p.Leaves = readList(r, p.Leaves, 8+2+1, (*reader).departure)
	case hasAlives:
		p.Alives = readList(r, p.Alives, 8+2+2, (*reader).entry)
	case hasSuspicions:
		p.Suspicions = readList(r, p.Suspicions, 8+8+2, (*reader).suspicion)
	case hasDead:
		p.Dead = readList(r, p.Dead, 8+2, (*reader).reference)
	case hasWatchers:
		p.Watchers = readList(r, p.Watchers, 8, (*reader).key)
	case hasBody:
		p.Body, r.B = r.B, nil
	}
}

func (p *Packet) readFlags(flags byte, r *reader) {
	p.Boot, p.Stealth, p.Answer = flags&flagBoot != 0, flags&flagStealth != 0, flags&flagAnswer != 0
	r.Bad = r.Bad || flags&^flagsOf[p.Type] != 0
}

// DecodePulse reads a heartbeat that is not sealed.
func DecodePulse(b []byte) (Pulse, error) {
	if t, err := TypeOf(b); err != nil {
		return Pulse{}, err
	} else if t != Heartbeat || len(b) != pulseSize || b[0]&0xf != 0 || b[1]&encrypted != 0 {
		return Pulse{}, fmt.Errorf("%w: %d bytes of type %v", ErrMalformed, len(b), t)
	}
	return Pulse{binary.BigEndian.Uint32(b[2:]), binary.BigEndian.Uint32(b[6:]), b[10], binary.BigEndian.Uint16(b[11:])}, nil
}

// readList reads a list whose elements have least bytes at least.
func readList[T any](r *reader, list []T, least int, one func(*reader) T) []T {
	for n := r.Count(least); n > 0 && !r.Bad; n-- {
		list = append(list, one(r))
	}
	return list
}

// reader reads the fields that messages share.
type reader struct{ cursor.Cursor }

func (r *reader) key() Key { return Key(r.Uint64()) }

func (r *reader) version() Version {
	return Version{r.Varint(), uint32(r.UpTo(MaxMinor))}
}

func (r *reader) reference() Reference { return Reference{r.key(), r.version()} }

func (r *reader) entry() Entry {
	e := Entry{Key: r.key(), Version: r.version()}
	e.ID = r.Take(int(r.Byte()))
	r.Bad = r.Bad || len(e.ID) == 0
	return e
}

func (r *reader) departure() Departure {
	d := Departure{Reference: r.reference()}
	switch r.Byte() {
	case 0:
	case 1:
		d.Exit = Exit{true, r.Byte()}
	default:
		r.Bad = true
	}
	return d
}

func (r *reader) suspicion() Suspicion { return Suspicion{r.key(), r.reference()} }
