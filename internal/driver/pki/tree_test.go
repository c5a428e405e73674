package pki_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// tree is an authority that is not this project's, and may have others under it.
type tree struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

var serials int64 = 1000

func newTree(t *testing.T) tree { return tree{}.under(t, "top") }

// make issues a certificate; the zero tree signs itself.
func (a tree) make(t *testing.T, template *x509.Certificate) tree {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serials++
	template.SerialNumber, template.BasicConstraintsValid = big.NewInt(serials), true
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, by := a.cert, a.key
	if parent == nil {
		parent, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tree{cert, key}
}

// under returns an authority whose certificate a has issued.
func (a tree) under(t *testing.T, name string) tree {
	t.Helper()
	return a.make(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign})
}

// held is a certificate in files, with those between it and a root.
type held struct {
	files
	leaf *x509.Certificate
}

func (a tree) leaf(t *testing.T, i pki.Identity, root *x509.Certificate) held {
	t.Helper()
	made := a.make(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: i.Name}, URIs: []*url.URL{{Scheme: pki.Scheme, Host: string(i.Role), Path: "/" + i.Name}},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	key, err := x509.MarshalPKCS8PrivateKey(made.key)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	dir := t.TempDir()
	f := files{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "ca.pem")}
	write(t, f.cert, append(encode("CERTIFICATE", made.cert.Raw), encode("CERTIFICATE", a.cert.Raw)...))
	write(t, f.key, encode("PRIVATE KEY", key))
	write(t, f.ca, encode("CERTIFICATE", root.Raw))
	return held{f, made.cert}
}

// list returns a revocation list with one certificate, nil: with none, and extensions.
func (a tree) list(t *testing.T, revoked *x509.Certificate, more ...pkix.Extension) []byte {
	t.Helper()
	l := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now(), NextUpdate: time.Now().Add(time.Hour), ExtraExtensions: more}
	if revoked != nil {
		l.RevokedCertificateEntries = []x509.RevocationListEntry{{SerialNumber: revoked.SerialNumber, RevocationTime: time.Now()}}
	}
	der, err := x509.CreateRevocationList(rand.Reader, l, a.cert, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})
}
