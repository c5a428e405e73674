package pki

import (
	"crypto/x509"
	"time"
)

// Info is what a certificate says.
type Info struct {
	Identity    Identity // zero where it names none
	NoIdentity  error    // why it names none; nil where it does
	Authority   bool     // it is an authority's
	Subject     string
	Issuer      string
	Serial      string // hexadecimal
	From, Until time.Time
	Server      bool  // it is for servers
	Client      bool  // it is for clients
	InTime      error // why it cannot be used now, by its time; nil where it can
}

// Inspect reports what the certificates in a PEM file say, in their order. It
// verifies none of them.
func Inspect(path string) ([]Info, error) {
	certs, err := readCertificates(path)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	all := make([]Info, len(certs))
	for i, cert := range certs {
		all[i] = Info{
			Authority: cert.IsCA, Subject: cert.Subject.String(), Issuer: cert.Issuer.String(), Serial: cert.SerialNumber.Text(16),
			From: cert.NotBefore, Until: cert.NotAfter, InTime: inTime(cert, now),
		}
		all[i].Identity, all[i].NoIdentity = IdentityOf(cert)
		for _, use := range cert.ExtKeyUsage {
			all[i].Server = all[i].Server || use == x509.ExtKeyUsageServerAuth || use == x509.ExtKeyUsageAny
			all[i].Client = all[i].Client || use == x509.ExtKeyUsageClientAuth || use == x509.ExtKeyUsageAny
		}
	}
	return all, nil
}
