package pki_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// selfIssued writes a certificate by a key of any kind, which is its own authority.
func selfIssued(t *testing.T, public, private any) *pki.Source {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "h"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
		URIs: []*url.URL{{Scheme: pki.Scheme, Host: "host", Path: "/h"}},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, keyFile := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := pki.Load(pki.Files{Cert: cert, Key: keyFile, CA: cert}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWords: a signature is taken with the message and the certificate that it is of, by
// who trusts that one's authority, if the certificate was good at the moment that counts.
func TestWords(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	ecdsa := issue(t, a, agentID, -time.Hour, time.Hour).load(t, nil)
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	large, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	stranger := issue(t, other, agentID, -time.Hour, time.Hour).load(t, nil)
	now := time.Now()
	for what, s := range map[string]*pki.Source{
		"ECDSA": ecdsa, "Ed25519": selfIssued(t, public, private), "RSA": selfIssued(t, &large.PublicKey, large),
	} {
		signature, chain, err := s.Sign([]byte("so"))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for range 2 { // also what is remembered
			if who, err := s.Signed([]byte("so"), signature, chain, now); err != nil || who != s.Identity() {
				t.Errorf("%s: %v, %v", what, who, err)
			}
			if _, err := stranger.Signed([]byte("so"), signature, chain, now); !errors.Is(err, pki.ErrAuthority) {
				t.Errorf("%s, at another authority's: %v", what, err)
			}
			if _, err := s.Signed([]byte("no"), signature, chain, now); !errors.Is(err, pki.ErrSignature) {
				t.Errorf("%s, another message: %v", what, err)
			}
			if _, err := s.Signed([]byte("so"), signature, chain, now.Add(-2*time.Hour)); !errors.Is(err, pki.ErrNotYetValid) {
				t.Errorf("%s, too early: %v", what, err)
			}
			if _, err := s.Signed([]byte("so"), signature, chain, now.Add(2*time.Hour)); !errors.Is(err, pki.ErrExpired) {
				t.Errorf("%s, too late: %v", what, err)
			}
		}
		if _, err := s.Signed([]byte("so"), signature, nil, now); !errors.Is(err, pki.ErrNoCertificate) {
			t.Errorf("%s, without a certificate: %v", what, err)
		}
		if _, err := s.Signed([]byte("so"), signature, [][]byte{{1}}, now); !errors.Is(err, pki.ErrFile) {
			t.Errorf("%s, with no certificate: %v", what, err)
		}
	}
}

// TestWordsOfAnAuthorityThatIsGone: what is remembered counts only as long as its authority is
// trusted, and nothing of it is revoked.
func TestWordsOfAnAuthorityThatIsGone(t *testing.T) {
	a, b := newAuthority(t), newAuthority(t)
	own := issue(t, b, agentID, -time.Hour, time.Hour)
	write(t, own.ca, append(a.PEM(), b.PEM()...))
	lists := filepath.Join(t.TempDir(), "revoked.pem")
	revoke(t, lists, a, time.Hour)
	s := own.withLists(t, lists, nil)
	signer := issue(t, a, hostID, -time.Hour, time.Hour)
	signature, chain, err := signer.load(t, nil).Sign([]byte("so"))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	is := func(what string, want error) {
		t.Helper()
		for range 2 {
			if _, err := s.Signed([]byte("so"), signature, chain, now); !errors.Is(err, want) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	is("trusted", nil)
	revoke(t, lists, a, time.Hour, signer.cert)
	is("revoked", pki.ErrRevoked)
	revoke(t, lists, a, time.Hour)
	is("pardoned", nil)
	write(t, own.ca, b.PEM())
	is("its authority is gone", pki.ErrAuthority)
}
