package membership

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/wire/attributes"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// rings are the keys for both uses that a node has of them.
type rings struct{ zone, hierarchy *gossip.Keyring }

func (r *rings) make(c *Config) (err error) {
	use := "zone"
	if c.Management {
		use = "management"
	}
	if r.zone, err = ring(c, use, c.Zone); err != nil {
		return err
	}
	r.hierarchy, err = ring(c, "hierarchy", 0)
	return err
}

// ring returns the keys for one use of what nodes share: the messages of a zone,
// or those between zones. Who has the keys of one can make those of all; but a packet of
// one zone is none of another, so that zones do not run into each other where
// addresses were mistaken.
func ring(c *Config, use string, number uint32) (*gossip.Keyring, error) {
	shared := make([]gossip.SharedKey, len(c.Keys))
	for i, k := range c.Keys {
		h := sha256.New()
		h.Write(k.Secret[:])
		h.Write(binary.BigEndian.AppendUint32([]byte("tributary membership "+use), number))
		shared[i] = gossip.SharedKey{Number: k.Number, Secret: [32]byte(h.Sum(nil))}
	}
	r, err := gossip.NewKeyring(c.Encrypt, shared...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return r, nil
}

// wire lays out what the loop sends, and reads what it takes.
type wire struct {
	codec  *member.Codec
	ring   *gossip.Keyring
	plain  []byte // scratch
	sealed []byte // scratch
}

// frames returns a message as frames of a stream. They are valid until the next
// call.
func (w *wire) frames(s *gossip.Stream, m *member.Message) (frames []byte, count int) {
	w.sealed = w.sealed[:0]
	for _, p := range w.codec.Pieces(m, gossip.MaxFrame) {
		w.frame(s, &p)
		count++
	}
	return w.sealed, count
}

func (w *wire) frame(s *gossip.Stream, p *gossip.Packet) {
	w.plain = p.Append(w.plain[:0])
	w.sealed = s.Seal(w.sealed, w.plain)
}

// body returns a frame of another core's.
func (w *wire) body(s *gossip.Stream, t gossip.Type, body []byte) []byte {
	w.sealed = w.sealed[:0]
	w.frame(s, &gossip.Packet{Type: t, Body: body})
	return w.sealed
}

// datagrams calls send with each datagram that a message is of.
func (w *wire) datagrams(m *member.Message, send func([]byte)) {
	for _, p := range w.codec.Pieces(m, gossip.MaxDatagram) {
		w.plain = p.Append(w.plain[:0])
		w.sealed = w.ring.Seal(w.sealed[:0], w.plain)
		send(w.sealed)
	}
}

// pulse returns a heartbeat.
func (w *wire) pulse(p member.Pulse) []byte {
	w.plain = p.Pulse.Append(w.plain[:0])
	w.sealed = w.ring.Seal(w.sealed[:0], w.plain)
	return w.sealed
}

// take returns what a frame reports, which lies in b.
func (w *wire) take(s *gossip.Stream, b []byte) (in member.Input, err error) {
	if b, err = s.Open(b); err != nil {
		return in, err
	}
	if t, err := gossip.TypeOf(b); err != nil || t != gossip.Attributes {
		in.Kind = member.Received
		in.Message, err = w.codec.Message(b)
		return in, err
	}
	in.Kind = member.Attached
	in.Payload, err = attributes.Decode(b[2:])
	return in, err
}

// takeDatagram returns what a datagram reports, which lies in b.
func (w *wire) takeDatagram(b []byte) (in member.Input, err error) {
	if b, err = w.ring.Open(b); err != nil {
		return in, err
	}
	if t, err := gossip.TypeOf(b); err != nil || t != gossip.Heartbeat {
		in.Kind = member.Datagram
		in.Message, err = w.codec.Message(b)
		return in, err
	}
	p, err := gossip.DecodePulse(b)
	return member.Input{Kind: member.Beat, Pulse: p}, err
}
