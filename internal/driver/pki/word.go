package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrSignature: a message is not signed by the certificate that comes with it.
var ErrSignature = errors.New("pki: the signature is not the certificate's")

// Sign signs a message by the certificate's key, for who gets both and has no connection
// with this process. It returns the certificate, and those between it and its authority,
// as well. The error is that of the key.
func (s *Source) Sign(message []byte) (signature []byte, chain [][]byte, err error) {
	pair := s.current().pair
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, nil, fmt.Errorf("%w: a key of type %T cannot sign", ErrFile, pair.PrivateKey)
	}
	digest := sha256.Sum256(message)
	switch key.Public().(type) {
	case ed25519.PublicKey:
		signature, err = key.Sign(rand.Reader, message, crypto.Hash(0))
	case *rsa.PublicKey:
		signature, err = key.Sign(rand.Reader, digest[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256})
	default:
		signature, err = key.Sign(rand.Reader, digest[:], crypto.SHA256)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("pki: signing: %w", err)
	}
	return signature, pair.Certificate, nil
}

// Signed returns who has signed a message, if the certificate that came with it could be
// trusted at a moment. What was found once in this process is remembered. The error wraps
// ErrSignature, ErrFile, or that of a connection's certificate.
func (s *Source) Signed(message, signature []byte, chain [][]byte, at time.Time) (Identity, error) {
	h := s.current()
	number := wordNumber(message, signature, chain, at)
	if identity, ok := words.find(number, h); ok {
		return identity, nil
	}
	certs := make([]*x509.Certificate, len(chain))
	for i, der := range chain {
		var err error
		if certs[i], err = x509.ParseCertificate(der); err != nil {
			return Identity{}, fmt.Errorf("%w: certificate %d of a signature: %w", ErrFile, i+1, err)
		}
	}
	identity, _, err := h.verify(certs, x509.ExtKeyUsageAny, at)
	if err != nil {
		return Identity{}, err
	}
	algorithm := x509.ECDSAWithSHA256
	switch certs[0].PublicKey.(type) {
	case *ecdsa.PublicKey:
	case ed25519.PublicKey:
		algorithm = x509.PureEd25519
	case *rsa.PublicKey:
		algorithm = x509.SHA256WithRSAPSS
	}
	if err := certs[0].CheckSignature(algorithm, message, signature); err != nil {
		return Identity{}, fmt.Errorf("%w: %s: %w", ErrSignature, subject(certs[0]), err)
	}
	words.add(number, word{h.roots, h.revoked, identity})
	return identity, nil
}

// word is a signature that was found to be good.
type word struct {
	roots    *x509.CertPool
	revoked  *revocations // by which it was good; nil: none
	identity Identity
}

// mostWords bounds how many are remembered twice over: of several thousand nodes, twice.
const mostWords = 1 << 14

// wordCache is of all nodes of a process.
type wordCache struct {
	mu         sync.Mutex
	young, old map[[sha256.Size]byte]word
}

var words wordCache

func (c *wordCache) find(number [sha256.Size]byte, h *held) (Identity, bool) {
	c.mu.Lock()
	w, ok := c.young[number]
	if !ok {
		w, ok = c.old[number]
	}
	c.mu.Unlock()
	return w.identity, ok && w.revoked == h.revoked && (w.roots == h.roots || w.roots.Equal(h.roots))
}

func (c *wordCache) add(number [sha256.Size]byte, w word) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.young == nil || len(c.young) >= mostWords {
		c.old, c.young = c.young, map[[sha256.Size]byte]word{}
	}
	c.young[number] = w
}

func wordNumber(message, signature []byte, chain [][]byte, at time.Time) (number [sha256.Size]byte) {
	h := sha256.New()
	part := func(b []byte) {
		_, _ = h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(b))))
		_, _ = h.Write(b)
	}
	part(message)
	part(signature)
	part(binary.BigEndian.AppendUint64(nil, uint64(at.UnixNano())))
	for _, der := range chain {
		part(der)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
