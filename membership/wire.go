package membership

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/wire/attributes"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// ring returns the keys of a zone's datagrams. Who has the keys of one can make those
// of all; but a datagram of one zone is none of another, so that zones do not run into
// each other where addresses were mistaken.
func ring(c *Config) (*gossip.Keyring, error) {
	use := "zone"
	if c.Management {
		use = "management"
	}
	shared := make([]gossip.SharedKey, len(c.Keys))
	for i, k := range c.Keys {
		h := sha256.New()
		h.Write(k.Secret[:])
		h.Write(binary.BigEndian.AppendUint32([]byte("tributary membership "+use), c.Zone))
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
	open   gossip.Keyring // of links: connections are authenticated, and nothing on them is sealed
	plain  []byte         // scratch
	pieces [][]byte       // scratch
	sealed []byte         // scratch
}

// packets returns a message as packets of a link. They are valid until the next call.
func (w *wire) packets(m *member.Message) [][]byte {
	w.plain, w.pieces = w.plain[:0], w.pieces[:0]
	for _, p := range w.codec.Pieces(m, gossip.MaxFrame) {
		w.packet(&p)
	}
	return w.pieces
}

func (w *wire) packet(p *gossip.Packet) {
	from := len(w.plain)
	w.plain = p.Append(w.plain)
	w.pieces = append(w.pieces, w.plain[from:len(w.plain):len(w.plain)])
}

// body returns a packet of another core's.
func (w *wire) body(t gossip.Type, body []byte) [][]byte {
	w.plain, w.pieces = w.plain[:0], w.pieces[:0]
	w.packet(&gossip.Packet{Type: t, Body: body})
	return w.pieces
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

// take returns what a packet of a link reports, which lies in b.
func (w *wire) take(b []byte) (in member.Input, err error) {
	if b, err = w.open.Open(b); err != nil {
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
