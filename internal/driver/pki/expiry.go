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
	chains, err := h.chains(s.now())
	if err != nil {
		return until
	}
	best := time.Time{}
	for _, chain := range chains { // with several authorities there may be several; one suffices
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

// chains returns the ways from the own certificate to an authority.
func (h *held) chains(now time.Time) ([][]*x509.Certificate, error) {
	between := x509.NewCertPool()
	for _, der := range h.pair.Certificate[1:] {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		between.AddCert(cert)
	}
	return h.pair.Leaf.Verify(x509.VerifyOptions{Roots: h.roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
}
