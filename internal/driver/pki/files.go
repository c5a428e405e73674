package pki

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/secretfile"
)

// Errors about certificates. They are wrapped; use errors.Is.
var (
	// ErrFile: a file cannot be read, or has not in it what it should.
	ErrFile = errors.New("pki: unusable file")
	// ErrKey: a key is not that of the certificate.
	ErrKey = errors.New("pki: the key does not belong to the certificate")
	// ErrExpired: a certificate's time is over.
	ErrExpired = errors.New("pki: the certificate has expired")
	// ErrNotYetValid: a certificate's time has not begun.
	ErrNotYetValid = errors.New("pki: the certificate is not valid yet")
	// ErrAuthority: a certificate is of an authority that is not trusted.
	ErrAuthority = errors.New("pki: the certificate is not of a trusted authority")
	// ErrUsage: a certificate is not for this side of a connection.
	ErrUsage = errors.New("pki: the certificate is not for this use")
	// ErrNoCertificate: the other side has none.
	ErrNoCertificate = errors.New("pki: the other side has no certificate")
)

const certificateBlock = "CERTIFICATE"

// readCertificates returns the certificates in a PEM file, at least one.
func readCertificates(path string) ([]*x509.Certificate, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	var all []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != certificateBlock {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: certificate %d: %w", ErrFile, path, len(all)+1, err)
		}
		all = append(all, cert)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: %s: there is no certificate in it (PEM, %q)", ErrFile, path, certificateBlock)
	}
	if begun := bytes.Count(text, []byte("-----BEGIN "+certificateBlock+"-----")); begun != len(all) {
		return nil, fmt.Errorf("%w: %s: %d certificates begin in it, and %d are whole", ErrFile, path, begun, len(all))
	}
	return all, nil
}

// readKey returns the first private key in a PEM file.
func readKey(path string) (crypto.Signer, error) {
	text, err := secretfile.Read(path)
	if errors.Is(err, secretfile.ErrMode) {
		return nil, fmt.Errorf("pki: private key: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		var key any
		switch block.Type {
		case "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		case "RSA PRIVATE KEY":
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		default:
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrFile, path, err)
		}
		if signer, ok := key.(crypto.Signer); ok {
			return signer, nil
		}
		return nil, fmt.Errorf("%w: %s: a key of type %T cannot sign", ErrFile, path, key)
	}
	return nil, fmt.Errorf("%w: %s: there is no private key in it (PEM, not encrypted)", ErrFile, path)
}

// readPair returns a certificate, with those after it in its file, and its key; and
// all these certificates.
func readPair(certFile, keyFile string) (*tls.Certificate, []*x509.Certificate, error) {
	chain, err := readCertificates(certFile)
	if err != nil {
		return nil, nil, err
	}
	key, err := readKey(keyFile)
	if err != nil {
		return nil, nil, err
	}
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(chain[0].PublicKey) {
		return nil, nil, fmt.Errorf("%w: certificate %s, key %s", ErrKey, certFile, keyFile)
	}
	pair := &tls.Certificate{PrivateKey: key, Leaf: chain[0]}
	for _, cert := range chain {
		pair.Certificate = append(pair.Certificate, cert.Raw)
	}
	return pair, chain, nil
}

// inTime reports why a certificate cannot be used at a moment.
func inTime(cert *x509.Certificate, now time.Time) error {
	const form = time.RFC3339
	switch {
	case now.After(cert.NotAfter):
		return fmt.Errorf("%w: %s, on %s; it is %s now", ErrExpired, subject(cert), cert.NotAfter.UTC().Format(form), now.UTC().Format(form))
	case now.Before(cert.NotBefore):
		return fmt.Errorf("%w: %s, before %s; it is %s now", ErrNotYetValid, subject(cert), cert.NotBefore.UTC().Format(form), now.UTC().Format(form))
	}
	return nil
}

// verify returns who holds a chain of certificates, whose first is the
// holder's, if it can be trusted for a use at a moment, and until when.
func (h *held) verify(chain []*x509.Certificate, use x509.ExtKeyUsage, now time.Time) (Identity, time.Time, error) {
	var until time.Time
	if len(chain) == 0 {
		return Identity{}, until, ErrNoCertificate
	}
	for _, cert := range chain {
		if err := inTime(cert, now); err != nil {
			return Identity{}, until, err
		}
	}
	all, err := ways(chain, h.roots, use, now)
	if err != nil {
		return Identity{}, until, named(chain[0], err)
	}
	for _, way := range all { // with several authorities there may be several; one suffices
		if revoked := h.revoked.check(way); revoked != nil {
			err = revoked
			continue
		}
		if ends := endOfChain(way); ends.After(until) {
			until = ends
		}
	}
	if until.IsZero() {
		return Identity{}, until, err
	}
	identity, err := IdentityOf(chain[0])
	return identity, until, err
}

// endOfChain returns when the first of certificates expires.
func endOfChain(chain []*x509.Certificate) time.Time {
	ends := chain[0].NotAfter
	for _, cert := range chain[1:] {
		if cert.NotAfter.Before(ends) {
			ends = cert.NotAfter
		}
	}
	return ends
}

// ways returns those from the first of a chain of certificates to an authority.
func ways(chain []*x509.Certificate, roots *x509.CertPool, use x509.ExtKeyUsage, now time.Time) ([][]*x509.Certificate, error) {
	between := x509.NewCertPool()
	for _, cert := range chain[1:] {
		between.AddCert(cert)
	}
	return chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{use}})
}

// named turns what x509 says of a certificate into this package's errors.
func named(cert *x509.Certificate, err error) error {
	is := ErrAuthority
	var invalid x509.CertificateInvalidError
	if errors.As(err, &invalid) {
		switch invalid.Reason {
		case x509.Expired: // of an authority on the way: the others are in time
			is = ErrExpired
		case x509.IncompatibleUsage:
			is = ErrUsage
		default:
		}
	}
	return fmt.Errorf("%w: %s, issued by %q: %w", is, subject(cert), cert.Issuer, err)
}
