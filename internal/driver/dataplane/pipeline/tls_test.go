package pipeline

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
	"github.com/tributary-fabric/tributary/internal/driver/p4rt"
)

// encrypted puts TLS before a target: it returns the address, and the authority of
// the certificate that it shows, which is for example.com.
func encrypted(t *testing.T, target string) (string, *x509.CertPool) {
	t.Helper()
	network, inner, err := p4rt.NetworkOf(target)
	if err != nil {
		t.Fatal(err)
	}
	known := httptest.NewUnstartedServer(nil)
	known.StartTLS()
	t.Cleanup(known.Close)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: known.TLS.Certificates, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { _ = listener.Close(); <-done })
	go func() {
		defer close(done)
		for {
			outside, err := listener.Accept()
			if err != nil {
				return
			}
			inside, err := net.Dial(network, inner)
			if err != nil {
				_ = outside.Close()
				continue
			}
			go func() { _, _ = io.Copy(inside, outside); _ = inside.Close() }()
			go func() { _, _ = io.Copy(outside, inside); _ = outside.Close() }()
		}
	}()
	authority := x509.NewCertPool()
	authority.AddCert(known.Certificate())
	return listener.Addr().String(), authority
}

// TestTLS reaches a target by TLS, and none that shows another certificate.
func TestTLS(t *testing.T) {
	target := newTarget(t)
	address, authority := encrypted(t, target.Address())
	c := configOf(address)
	c.Target.TLS = &tls.Config{RootCAs: authority, ServerName: "example.com"}
	newBench(t, c).usable()
	for name, wrong := range map[string]*tls.Config{
		"another name": {RootCAs: authority, ServerName: "example.net"}, "another authority": {RootCAs: x509.NewCertPool(), ServerName: "example.com"},
	} {
		c.Target.TLS = wrong
		b := newBench(t, c)
		for {
			if o := await[dataplane.Offer](b); o.Unusable == "" {
				t.Fatalf("%s: it is usable", name)
			} else if strings.Contains(o.Unusable, "certificate") {
				break
			}
		}
	}
}
