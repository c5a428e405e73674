package rpc

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"testing"
	"time"
)

// certificate returns a self-signed one for 127.0.0.1, and a pool with it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:         true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestTLS(t *testing.T) {
	own, pool := certificate(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeAgent{state: someState}
	s := Serve(listener, Services{Agent: f}, ServerConfig{TLS: &tls.Config{
		Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
	}})
	defer s.Kill()
	for name, tt := range map[string]struct {
		client *tls.Config
		ok     bool
	}{
		"mutual":             {&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{own}}, true},
		"client without":     {&tls.Config{RootCAs: pool}, false},
		"server not trusted": {&tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{own}}, false},
		"not encrypted":      {nil, false},
	} {
		c, err := DialAgent(s.Addr().String(), ClientConfig{TLS: tt.client})
		if err != nil {
			t.Fatal(err)
		}
		state, err := c.State(testContext(t))
		if tt.ok && (err != nil || state.Switch != someState.Switch) {
			t.Errorf("%s: %v", name, err)
		}
		if !tt.ok && !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: got in, or %v", name, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
