package sealed

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync/atomic"

	"github.com/tributary-fabric/tributary/internal/wire"
)

// Window is how many packets of a direction one may be late by.
const Window = 1 << 24

const overhead = wire.TagSize + wire.CounterSize

// Edge is a neighbour in an epoch.
type Edge struct {
	Peer netip.AddrPort // an IPv4 address not mapped into IPv6
	// Child is the child's index at the parent, whichever of both the neighbour is.
	Child  uint16
	IsDown bool // the neighbour is the child
	Key    wire.Secret
}

// place is where an edge's packets are found by.
type place struct {
	epoch uint32
	peer  netip.AddrPort
	child uint16
}

// edge is a neighbour with its keys.
type edge struct {
	isEncrypted bool
	isDown      bool
	key         wire.Secret
	out, in     cipher.AEAD
	sent        atomic.Uint64 // counter of the last packet
	highest     uint64        // of those that came; the reader's
	refused     atomic.Uint64
}

// newEdge derives the keys of both directions.
func newEdge(e *Edge, p wire.Protection) (*edge, error) {
	up, err := derive(e.Key, "up")
	if err != nil {
		return nil, err
	}
	down, err := derive(e.Key, "down")
	if err != nil {
		return nil, err
	}
	n := &edge{isEncrypted: p == wire.Encrypted, isDown: e.IsDown, key: e.Key, out: up, in: down}
	if e.IsDown {
		n.out, n.in = down, up
	}
	return n, nil
}

// equal reports whether two are the same neighbour by the same keys.
func (e *edge) equal(o *edge) bool {
	return e.key == o.key && e.isEncrypted == o.isEncrypted && e.isDown == o.isDown
}

func derive(k wire.Secret, direction string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, k[:], nil, "tributary packets "+direction, 16)
	if err != nil {
		return nil, fmt.Errorf("sealed: deriving a key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("sealed: %w", err)
	}
	return cipher.NewGCM(block)
}

// nonce is memory for one, which ciphers keep no pointer to.
type nonce [12]byte

func (n *nonce) set(counter uint64) []byte {
	binary.BigEndian.PutUint64(n[4:], counter)
	return n[:]
}

// seal turns the header at the beginning of packet, and the payload, into a sealed packet of all its bytes.
// The payload may be where it is to be in packet.
func (e *edge) seal(packet, payload []byte, n *nonce) {
	end := len(packet) - overhead
	counter := e.sent.Add(1)
	binary.BigEndian.PutUint64(packet[end+wire.TagSize:], counter)
	if e.isEncrypted {
		e.out.Seal(packet[wire.HeaderSize:wire.HeaderSize], n.set(counter), payload, packet[:wire.HeaderSize])
		return
	}
	copy(packet[wire.HeaderSize:], payload)
	e.out.Seal(packet[end:end], n.set(counter), nil, packet[:end])
}

// open turns a sealed packet into a plain one, which is shorter by overhead, in the same memory. It
// reports false if the packet is refused, whose bytes are undefined then.
func (e *edge) open(packet []byte, n *nonce) bool {
	end := len(packet) - overhead
	counter := binary.BigEndian.Uint64(packet[end+wire.TagSize:])
	if counter == 0 || counter < e.highest && e.highest-counter > Window {
		return false
	}
	tagged := packet[:end+wire.TagSize]
	var err error
	if e.isEncrypted {
		_, err = e.in.Open(packet[wire.HeaderSize:wire.HeaderSize], n.set(counter), tagged[wire.HeaderSize:], packet[:wire.HeaderSize])
	} else {
		_, err = e.in.Open(nil, n.set(counter), tagged[end:], packet[:end])
	}
	if err != nil {
		return false
	}
	e.highest = max(e.highest, counter)
	return true
}
