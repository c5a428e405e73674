package gossip

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
)

// Errors of keys and seals.
var (
	ErrKey  = errors.New("gossip: invalid key")
	ErrSeal = errors.New("gossip: a packet that is not sealed by a known key, or was changed")
)

// Sizes of seals.
const (
	pulseSeal = 8
	macSize   = 16
	nonceSize = 24
	maxSeal   = nonceSize + macSize

	encrypted = 0x80 // in the header: the body is encrypted
)

// SharedKey is a secret that all nodes have.
type SharedKey struct {
	Number uint8    // 1 to 15, of this key alone
	Secret [32]byte // random bytes
}

// Format implements fmt.Formatter: it hides the secret.
func (k SharedKey) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "key %d", k.Number) }

// MarshalText hides the secret from encoders; there is no way back.
func (k SharedKey) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%v", k), nil }

// Keyring seals and opens packets. It is not safe for concurrent use. The
// Keyring without keys seals nothing and opens what is not sealed.
type Keyring struct {
	sealing *keys // nil: none
	known   [16]*keys
	encrypt bool
}

// NewKeyring returns a keyring that seals with the first key and opens with all.
// The error wraps ErrKey.
func NewKeyring(encrypt bool, shared ...SharedKey) (*Keyring, error) {
	k := &Keyring{encrypt: encrypt}
	for i := range shared {
		s := &shared[i]
		if s.Number < 1 || s.Number > 15 || k.known[s.Number] != nil {
			return nil, fmt.Errorf("%w: number %d of key %d, want 1 to 15 and each once", ErrKey, s.Number, i)
		}
		k.known[s.Number] = newKeys(s.Number, s.Secret[:])
	}
	if len(shared) > 0 {
		k.sealing = k.known[shared[0].Number]
	} else if encrypt {
		return nil, fmt.Errorf("%w: encryption without a key", ErrKey)
	}
	return k, nil
}

// keys are what is made of a shared key.
type keys struct {
	number uint8
	mac    hash.Hash
	box    *xaes
	sum    [sha256.Size]byte
}

// newKeys makes keys of a secret.
func newKeys(number uint8, secret []byte) *keys {
	derive := func(what string) []byte {
		h := hmac.New(sha256.New, secret)
		h.Write([]byte("tributary gossip 1 " + what))
		h.Write([]byte("\x00\x00\x00\x08datagram"))
		return h.Sum(nil)
	}
	return &keys{number, hmac.New(sha256.New, derive("authenticate")), newXAES(derive("encrypt, 24-byte nonces")), [sha256.Size]byte{}}
}

// tag returns the authentication of a packet.
func (k *keys) tag(packet []byte) []byte {
	k.mac.Reset()
	k.mac.Write(packet)
	return k.mac.Sum(k.sum[:0])
}

// Seal appends the datagram b, which is a packet that is not sealed.
func (k *Keyring) Seal(to, b []byte) []byte {
	from := len(to)
	to = append(to, b...)
	if k.sealing == nil {
		return to
	}
	to[from] |= k.sealing.number
	switch {
	case Type(b[1]) == Heartbeat:
		return append(to, k.sealing.tag(to[from:])[:pulseSeal]...)
	case !k.encrypt:
		return append(to, k.sealing.tag(to[from:])[:macSize]...)
	}
	to[from+1] |= encrypted
	var nonce [nonceSize]byte
	rand.Read(nonce[:])
	header := [headerSize]byte(to[from:])
	to = append(to[:from+headerSize], nonce[:]...)
	return k.sealing.box.seal(to, &nonce, b[headerSize:], header[:])
}

// Open returns the packet that a datagram is of. It overwrites b, in which the
// packet lies. The error wraps ErrSeal, ErrVersion or ErrMalformed.
func (k *Keyring) Open(b []byte) ([]byte, error) {
	t, err := TypeOf(b)
	if err != nil {
		return nil, err
	}
	sealed, err := k.sealedBy(b)
	if sealed == nil {
		return b, err
	}
	if b[1]&encrypted == 0 {
		size := macSize
		if t == Heartbeat {
			size = pulseSeal
		}
		return sealed.check(b, size)
	}
	if len(b) < headerSize+maxSeal || t == Heartbeat {
		return nil, ErrSeal
	}
	nonce := [nonceSize]byte(b[headerSize:])
	return sealed.unbox(&nonce, b, b[headerSize+nonceSize:])
}

// sealedBy returns the keys that b says it is sealed with; nil without an error
// if neither is b sealed nor has the keyring a key. Who encrypts takes nothing
// that is not, heartbeats apart.
func (k *Keyring) sealedBy(b []byte) (*keys, error) {
	number, open := b[0]&0xf, b[1]&encrypted == 0
	switch {
	case k.sealing == nil && number == 0 && open:
		return nil, nil
	case k.known[number] == nil:
		return nil, fmt.Errorf("%w: key %d", ErrSeal, number)
	case k.encrypt && open && Type(b[1]) != Heartbeat:
		return nil, fmt.Errorf("%w: not encrypted", ErrSeal)
	}
	return k.known[number], nil
}

// check opens a packet that is authenticated.
func (k *keys) check(b []byte, size int) ([]byte, error) {
	end := len(b) - size
	if end < headerSize || !hmac.Equal(k.tag(b[:end])[:size], b[end:]) {
		return nil, ErrSeal
	}
	b[0] &^= 0xf
	return b[:end], nil
}

// unbox opens a packet that is encrypted.
func (k *keys) unbox(nonce *[nonceSize]byte, b, body []byte) ([]byte, error) {
	header := [headerSize]byte(b)
	body, err := k.box.open(body[:0], nonce, body, header[:])
	if err != nil {
		return nil, ErrSeal
	}
	b[0], b[1] = b[0]&^0xf, b[1]&^encrypted
	n := copy(b[headerSize:], body)
	return b[:headerSize+n], nil
}
