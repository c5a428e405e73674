package pipeline

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/p4rt"
	"github.com/tributary-fabric/tributary/internal/driver/p4rt/p4rttest"
	"github.com/tributary-fabric/tributary/p4"
)

// authority makes certificates.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert = a.sign("an authority", &a.key).Leaf
	return a
}

// sign returns a certificate of a name, the first of them the authority's own.
func (a *authority) sign(name string, keep **ecdsa.PrivateKey) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := a.cert, a.key
	if keep != nil {
		template.IsCA, template.BasicConstraintsValid = true, true
		*keep, parent, signer = key, template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// guarded returns a target that shows a certificate for leaf-0, and wants one.
func guarded(t *testing.T, a *authority) *p4rttest.Target {
	t.Helper()
	target, err := p4rttest.StartTLS(&tls.Config{
		Certificates: []tls.Certificate{a.sign("leaf-0", nil)}, ClientCAs: a.pool(), ClientAuth: tls.RequireAndVerifyClientCert,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	target.Cable(p4.CPUPort, p4.CPUPort)
	target.Cable(p4.LoopOutPort, p4.LoopInPort)
	return target
}

// TestTLS reaches a target by TLS with a certificate, a user and a password; none that
// shows another certificate, or wants another one, or another password. What is given
// is read anew for each connection.
func TestTLS(t *testing.T) {
	a := newAuthority(t)
	target := guarded(t, a)
	target.Require("agent", "secret")
	own := []tls.Certificate{a.sign("agent", nil)}
	right := &tls.Config{RootCAs: a.pool(), ServerName: "leaf-0", Certificates: own}
	login := p4rt.Login{User: "agent", Password: "secret"}
	for name, wrong := range map[string]struct {
		config *tls.Config
		login  p4rt.Login
		says   string
	}{
		"another name":         {&tls.Config{RootCAs: a.pool(), ServerName: "leaf-1", Certificates: own}, login, "certificate"},
		"another authority":    {&tls.Config{RootCAs: newAuthority(t).pool(), ServerName: "leaf-0", Certificates: own}, login, "certificate"},
		"no certificate":       {&tls.Config{RootCAs: a.pool(), ServerName: "leaf-0"}, login, "certificate"},
		"a stranger's":         {&tls.Config{RootCAs: a.pool(), ServerName: "leaf-0", Certificates: []tls.Certificate{newAuthority(t).sign("agent", nil)}}, login, "certificate"},
		"another password":     {right, p4rt.Login{User: "agent", Password: "guess"}, p4rt.ErrLogin.Error()},
		"no user":              {right, p4rt.Login{}, p4rt.ErrLogin.Error()},
		"files that have gone": {nil, login, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			c := configOf(target.Address())
			var now atomic.Pointer[tls.Config]
			now.Store(wrong.config)
			c.Target.TLS = func() (*tls.Config, error) {
				if config := now.Load(); config != nil {
					return config.Clone(), nil
				}
				return nil, errors.New("no such file")
			}
			c.Target.Login = wrong.login
			b := newBench(t, c)
			b.unusable(wrong.says)
			if wrong.login == login {
				now.Store(right)
				b.usable()
			}
		})
	}
}

// TestPlainTextToTLS: an agent without TLS is pointed to it, where gRPC reports the
// end of a connection alone.
func TestPlainTextToTLS(t *testing.T) {
	b := newBench(t, configOf(guarded(t, newAuthority(t)).Address()))
	b.unusable("(p4runtime: tls)")
}
