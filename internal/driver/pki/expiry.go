package pki

import (
	"crypto/x509"
	"time"
)

// Until returns when the certificate in use cannot be used any more: when it, or
// what it rests upon, expires. Files that have changed count.
func (s *Source) Until() time.Time {
	h := s.current()
	until := h.pair.Leaf.NotAfter
	all, err := ways(h.chain, h.roots, x509.ExtKeyUsageAny, s.now())
	if err != nil {
		return until
	}
	best := time.Time{}
	for _, chain := range all { // with several authorities there may be several; one suffices
		ends := until
		for _, cert := range chain {
			if cert.NotAfter.Before(ends) {
				ends = cert.NotAfter
			}
		}
		if ends.After(best) {
			best = ends
		}
	}
	return best
}
