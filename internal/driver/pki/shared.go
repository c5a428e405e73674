package pki

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"
)

// Shared returns a Source for an identity whose certificate this process makes itself,
// by an authority that everybody makes alike who has the secret. So who has it may be
// anybody, and who has not is nobody. The first secret issues, all are trusted.
func Shared(i Identity, secrets ...[32]byte) (*Source, error) {
	s := &Source{identity: i, now: time.Now}
	return s, s.Share(secrets...)
}

// Share replaces the secrets of a Source that Shared has returned. Connections that it
// follows, and that were made by a secret that is not among them any more, end.
func (s *Source) Share(secrets ...[32]byte) error {
	h := &held{roots: x509.NewCertPool()}
	for k := range secrets {
		a, err := sharedAuthority(&secrets[k])
		if err != nil {
			return err
		}
		h.roots.AddCert(a.cert)
		if k > 0 {
			continue
		}
		cert, key, err := a.Issue(s.identity, a.cert.NotBefore, a.cert.NotAfter)
		if err != nil {
			return err
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("pki: issuing for %s: %w", s.identity, err)
		}
		h.pair, h.chain, h.until = &pair, []*x509.Certificate{pair.Leaf}, pair.Leaf.NotAfter
	}
	s.mu.Lock()
	s.held = h
	s.mu.Unlock()
	s.sweep()
	return nil
}

// sharedAuthority returns the authority of who has a secret. It is valid for ever: the
// secret alone ends it, whatever clocks show.
func sharedAuthority(secret *[32]byte) (*Authority, error) {
	m := hmac.New(sha256.New, secret[:])
	m.Write([]byte("tributary authority of a shared key"))
	key := ed25519.NewKeyFromSeed(m.Sum(nil))
	public := key.Public().(ed25519.PublicKey)
	template := &x509.Certificate{
		Subject:      pkix.Name{CommonName: fmt.Sprintf("Tributary shared key %x", sha256.Sum256(public))},
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
	}
	return selfSigned(template, key)
}
