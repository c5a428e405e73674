package pki_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

var (
	managerID  = pki.Identity{Role: pki.Manager, Name: "m"}
	agentID    = pki.Identity{Role: pki.Agent, Name: "leaf-0"}
	hostID     = pki.Identity{Role: pki.Host, Name: "h0"}
	operatorID = pki.Identity{Role: pki.Operator, Name: "o"}
)

// patience ends a test that would wait for ever; no test waits for it to pass.
const patience = 30 * time.Second

// files are the paths of a certificate, its key, and its authorities.
type files struct{ cert, key, ca string }

func newAuthority(t *testing.T) *pki.Authority {
	t.Helper()
	a, err := pki.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// issue writes a certificate that is valid from and until so long from now.
func issue(t *testing.T, a *pki.Authority, i pki.Identity, from, until time.Duration) files {
	t.Helper()
	dir := t.TempDir()
	f := files{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "ca.pem")}
	f.renew(t, a, i, from, until)
	write(t, f.ca, a.PEM())
	return f
}

// renew writes a new certificate and key.
func (f files) renew(t *testing.T, a *pki.Authority, i pki.Identity, from, until time.Duration) {
	t.Helper()
	cert, key, err := a.Issue(i, time.Now().Add(from), time.Now().Add(until))
	if err != nil {
		t.Fatal(err)
	}
	write(t, f.cert, cert)
	write(t, f.key, key)
}

// write puts a file in place as tools do: a new one under the old name.
func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path+".new", text, 0o600), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

func (f files) load(t *testing.T, log *slog.Logger) *pki.Source {
	t.Helper()
	s, err := pki.Load(pki.Files{Cert: f.cert, Key: f.key, CA: f.ca}, log)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func valid(t *testing.T, a *pki.Authority, i pki.Identity) *pki.Source {
	t.Helper()
	return issue(t, a, i, -time.Hour, time.Hour).load(t, nil)
}

// withoutRole is a certificate of its own authority that names no identity.
func withoutRole(t *testing.T) files {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f := files{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "cert.pem")}
	write(t, f.cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	write(t, f.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	return f
}

func TestLoadSaysWhatIsWrong(t *testing.T) {
	a := newAuthority(t)
	good := issue(t, a, hostID, -time.Hour, time.Hour)
	other := issue(t, newAuthority(t), hostID, -time.Hour, time.Hour)
	text := filepath.Join(t.TempDir(), "text")
	write(t, text, []byte("hello"))
	garbage := filepath.Join(t.TempDir(), "garbage")
	write(t, garbage, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("hello")}))
	for name, c := range map[string]struct {
		files
		want error
		says string
	}{
		"expired":       {issue(t, a, hostID, -2*time.Hour, -time.Hour), pki.ErrExpired, hostID.String()},
		"not yet valid": {issue(t, a, hostID, time.Hour, 2*time.Hour), pki.ErrNotYetValid, hostID.String()},
		"other CA":      {files{good.cert, good.key, other.ca}, pki.ErrAuthority, hostID.String()},
		"other key":     {files{good.cert, other.key, good.ca}, pki.ErrKey, other.key},
		"no role":       {withoutRole(t), pki.ErrNoRole, "tributary://ROLE/NAME"},
		"no file":       {files{good.cert + "x", good.key, good.ca}, os.ErrNotExist, good.cert + "x"},
		"no key file":   {files{good.cert, good.key + "x", good.ca}, os.ErrNotExist, good.key + "x"},
		"no CA file":    {files{good.cert, good.key, good.ca + "x"}, os.ErrNotExist, good.ca + "x"},
		"text":          {files{text, good.key, good.ca}, pki.ErrFile, text},
		"key is text":   {files{good.cert, text, good.ca}, pki.ErrFile, text},
		"swapped":       {files{good.key, good.cert, good.ca}, pki.ErrFile, good.key},
		"garbage":       {files{garbage, good.key, good.ca}, pki.ErrFile, garbage},
	} {
		s, err := pki.Load(pki.Files{Cert: c.cert, Key: c.key, CA: c.ca}, nil)
		if s != nil || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v that names %s", name, err, c.want, c.says)
		}
	}
}

// meet has a client and a server shake hands over loopback, and returns what
// either has to say of it.
func meet(t *testing.T, server, client *tls.Config) (byServer, byClient error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	served := make(chan error, 1)
	go func() {
		raw, err := listener.Accept()
		if err != nil {
			served <- err
			return
		}
		defer raw.Close()
		_ = raw.SetDeadline(time.Now().Add(patience))
		conn := tls.Server(raw, server)
		_, err = conn.Write([]byte{1}) // shakes hands first
		served <- err
	}()
	raw, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(patience))
	_, byClient = io.ReadFull(tls.Client(raw, client), make([]byte, 1))
	raw.Close() // what the server waits for does not come any more
	return <-served, byClient
}

func TestOnlyWhoIsTrustedIsMet(t *testing.T) {
	a, b := newAuthority(t), newAuthority(t)
	server := valid(t, a, agentID)
	manager := valid(t, a, managerID)
	toAgent := pki.Want{Role: pki.Agent, Name: agentID.Name}
	if s, c := meet(t, server.Server(), manager.Client(toAgent)); s != nil || c != nil {
		t.Fatalf("server %v, client %v", s, c)
	}

	for name, c := range map[string]struct {
		server, client     *tls.Config
		byServer, byClient error
		says               string
	}{
		"another's name":   {server.Server(), manager.Client(pki.Want{Role: pki.Agent, Name: "leaf-1"}), nil, pki.ErrWrongRole, agentID.String()},
		"another role":     {server.Server(), manager.Client(pki.Want{Role: pki.Manager}), nil, pki.ErrWrongRole, agentID.String()},
		"not for servers":  {valid(t, a, operatorID).Server(), manager.Client(pki.Want{Role: pki.Operator}), nil, pki.ErrUsage, operatorID.String()},
		"server's CA":      {valid(t, b, agentID).Server(), manager.Client(toAgent), nil, pki.ErrAuthority, agentID.String()},
		"agent as client":  {server.Server(), valid(t, a, agentID).Client(toAgent), pki.ErrUsage, nil, agentID.String()},
		"client's CA":      {server.Server(), unchecked(t, issue(t, b, managerID, -time.Hour, time.Hour)), pki.ErrAuthority, nil, managerID.String()},
		"client expired":   {server.Server(), unchecked(t, issue(t, a, managerID, -2*time.Hour, -time.Hour)), pki.ErrExpired, nil, managerID.String()},
		"client too early": {server.Server(), unchecked(t, issue(t, a, managerID, time.Hour, 2*time.Hour)), pki.ErrNotYetValid, nil, managerID.String()},
		"server expired":   {unchecked(t, issue(t, a, agentID, -2*time.Hour, -time.Hour)), manager.Client(toAgent), nil, pki.ErrExpired, agentID.String()},
		"server too early": {unchecked(t, issue(t, a, agentID, time.Hour, 2*time.Hour)), manager.Client(toAgent), nil, pki.ErrNotYetValid, agentID.String()},
	} {
		s, k := meet(t, c.server, c.client)
		if s == nil && k == nil {
			t.Errorf("%s: they have met", name)
			continue
		}
		if c.byServer != nil && (!errors.Is(s, c.byServer) || !strings.Contains(s.Error(), c.says)) {
			t.Errorf("%s: the server says %v, want %v that names %s", name, s, c.byServer, c.says)
		}
		if c.byClient != nil && (!errors.Is(k, c.byClient) || !strings.Contains(k.Error(), c.says)) {
			t.Errorf("%s: the client says %v, want %v that names %s", name, k, c.byClient, c.says)
		}
	}

	for name, client := range map[string]*tls.Config{
		"no certificate": {InsecureSkipVerify: true},
		"TLS 1.2":        {InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12},
	} {
		if s, c := meet(t, server.Server(), client); s == nil || c == nil {
			t.Errorf("%s: server %v, client %v", name, s, c)
		}
	}
}

// unchecked is a configuration that presents what a Source would not load, and
// takes everything.
func unchecked(t *testing.T, f files) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true, ClientAuth: tls.RequireAnyClientCert}
}

func TestExpect(t *testing.T) {
	s := valid(t, newAuthority(t), agentID)
	for want, ok := range map[pki.Want]bool{
		{}: true, {Role: pki.Agent}: true, {Role: pki.Agent, Name: "leaf-0"}: true,
		{Role: pki.Agent, Name: "leaf-1"}: false, {Role: pki.Manager}: false,
	} {
		if err := s.Expect(want); (err == nil) != ok || !ok && !errors.Is(err, pki.ErrWrongRole) {
			t.Errorf("%+v: %v", want, err)
		}
	}
}

// serialOf returns the serial number of the certificate that a server presents.
func serialOf(t *testing.T, s *pki.Source) string {
	t.Helper()
	pair, err := s.Server().GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf.SerialNumber.String()
}

func TestChangedFilesAreTaken(t *testing.T) {
	a := newAuthority(t)
	var log bytes.Buffer
	f := issue(t, a, agentID, -time.Hour, time.Hour)
	s := f.load(t, slog.New(slog.NewTextHandler(&log, nil)))
	manager := valid(t, a, managerID)
	server, client := s.Server(), manager.Client(pki.Want{Role: pki.Agent})
	first := serialOf(t, s)

	f.renew(t, a, agentID, -time.Hour, time.Hour)
	second := serialOf(t, s)
	if byServer, byClient := meet(t, server, client); second == first || byServer != nil || byClient != nil {
		t.Errorf("renewed: %s, then %s; server %v, client %v", first, second, byServer, byClient)
	}

	for name, c := range map[string]struct {
		breakIt func()
		says    string
	}{
		"half":     {func() { write(t, f.cert, []byte("-----BEGIN CERTIFICATE-----")) }, "no certificate in it"},
		"gone":     {func() { _ = os.Remove(f.key) }, "no such file"},
		"expired":  {func() { f.renew(t, a, agentID, -2*time.Hour, -time.Hour) }, pki.ErrExpired.Error()},
		"another":  {func() { f.renew(t, a, managerID, -time.Hour, time.Hour) }, "it was " + agentID.String()},
		"other CA": {func() { write(t, f.ca, newAuthority(t).PEM()) }, pki.ErrAuthority.Error()},
	} {
		log.Reset()
		c.breakIt()
		for range 3 {
			if now := serialOf(t, s); now != second {
				t.Errorf("%s: the certificate became %s", name, now)
			}
		}
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "level=ERROR") || !strings.Contains(text, c.says) {
			t.Errorf("%s: the log says %q, want one line with %q", name, text, c.says)
		}
		if byServer, byClient := meet(t, server, client); byServer != nil || byClient != nil {
			t.Errorf("%s: server %v, client %v", name, byServer, byClient)
		}
		write(t, f.ca, a.PEM())
		f.renew(t, a, agentID, -time.Hour, time.Hour)
		now := serialOf(t, s)
		if now == second {
			t.Errorf("%s: the repaired files are not taken: %s", name, log.String())
		}
		second = now
	}
}

func TestAnAuthorityCanBeReplaced(t *testing.T) {
	a, b := newAuthority(t), newAuthority(t)
	f, g := issue(t, a, agentID, -time.Hour, time.Hour), issue(t, a, managerID, -time.Hour, time.Hour)
	server, client := f.load(t, nil).Server(), g.load(t, nil).Client(pki.Want{Role: pki.Agent})
	step := func(what string, change func()) {
		change()
		if s, c := meet(t, server, client); s != nil || c != nil {
			t.Errorf("%s: server %v, client %v", what, s, c)
		}
	}
	both := append(a.PEM(), b.PEM()...)
	step("both are trusted", func() { write(t, f.ca, both); write(t, g.ca, both) })
	step("one has a new certificate", func() { f.renew(t, b, agentID, -time.Hour, time.Hour) })
	step("so has the other", func() { g.renew(t, b, managerID, -time.Hour, time.Hour) })
	step("the old one is not trusted any more", func() { write(t, f.ca, b.PEM()); write(t, g.ca, b.PEM()) })
	old := unchecked(t, issue(t, a, managerID, -time.Hour, time.Hour))
	if s, _ := meet(t, server, old); !errors.Is(s, pki.ErrAuthority) {
		t.Errorf("of the old authority: %v", s)
	}
}

func TestTimePasses(t *testing.T) {
	a := newAuthority(t)
	server, client := valid(t, a, agentID), valid(t, a, managerID)
	want := pki.Want{Role: pki.Agent}
	late := func() time.Time { return time.Now().Add(2 * time.Hour) }
	client.SetClock(late)
	if _, err := meet(t, server.Server(), client.Client(want)); !errors.Is(err, pki.ErrExpired) || !strings.Contains(err.Error(), agentID.String()) {
		t.Errorf("the server's has expired: %v", err)
	}
	long := issue(t, a, agentID, -time.Hour, 10*time.Hour).load(t, nil)
	if _, err := meet(t, long.Server(), client.Client(want)); !errors.Is(err, pki.ErrExpired) || !strings.Contains(err.Error(), "own certificate") {
		t.Errorf("the client's own has expired: %v", err)
	}
	long.SetClock(late)
	if err, _ := meet(t, long.Server(), valid(t, a, managerID).Client(want)); !errors.Is(err, pki.ErrExpired) || !strings.Contains(err.Error(), managerID.String()) {
		t.Errorf("the client's has expired: %v", err)
	}
}
