package gossip

import (
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
		Dead: p.Dead[:0], Watchers: p.Watchers[:0], Births: p.Births[:0],
	}
	c := cursor.Cursor{B: b[headerSize:]}
	for _, f := range fields {
		p.field(&c, f)
	}
	if c.Bad || len(c.B) > 0 {
		return fmt.Errorf("%w: %d bytes of type %v, %d left", ErrMalformed, len(b), t, len(c.B))
	}
	return nil
}

// DecodePulse reads a heartbeat that is not sealed.
func DecodePulse(b []byte) (p Pulse, err error) {
	if t, err := TypeOf(b); err != nil {
		return Pulse{}, err
	} else if t != Heartbeat || len(b) != pulseSize || b[0]&0xf != 0 || b[1]&encrypted != 0 {
		return Pulse{}, fmt.Errorf("%w: %d bytes of type %v", ErrMalformed, len(b), t)
	}
	p.fields(&cursor.Cursor{B: b[headerSize:]})
	return p, nil
}
