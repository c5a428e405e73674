package pki_test

import (
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"
)

// The end of a certificate's use is its own or its authority's, and follows
// renewal.
func TestUntil(t *testing.T) {
	a := newAuthority(t)
	f := issue(t, a, agentID, -time.Hour, time.Hour)
	s := f.load(t, nil)
	near := func(want time.Time) {
		t.Helper()
		if d := s.Until().Sub(want).Abs(); d > time.Minute {
			t.Errorf("until %v, want %v", s.Until(), want)
		}
	}
	near(time.Now().Add(time.Hour))
	f.renew(t, a, agentID, -time.Hour, 48*time.Hour)
	near(time.Now().Add(48 * time.Hour))
	block, _ := pem.Decode(a.PEM())
	root, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	f.renew(t, a, agentID, -time.Hour, time.Until(root.NotAfter)+240*time.Hour)
	near(root.NotAfter)
}
