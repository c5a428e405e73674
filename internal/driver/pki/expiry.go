package pki

import (
	"crypto/x509"
	"time"
)

// Until returns when the certificate in use cannot be used any more: when it, or
// what it rests upon, expires. Files that have changed count.
func (s *Source) Until() time.Time {
	h := s.current()
	if _, until, err := h.verify(h.chain, x509.ExtKeyUsageAny, s.now()); err == nil {
		return until
	}
	return h.pair.Leaf.NotAfter
}

// ListsDue returns when the first revocation list in use is to be followed by another one;
// zero: there is none, or none says so.
func (s *Source) ListsDue() time.Time { return s.current().revoked.due() }
