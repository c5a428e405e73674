package peer

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

// TestKeysAreChanged: a connection is replaced after as many bytes as its key may encrypt, in
// either direction, while frames are sent, of which each arrives once and in order.
func TestKeysAreChanged(t *testing.T) {
	all := sources(t, "a", "b")
	w := newTown()
	const most = 16 << 10
	a, _ := w.settle(t, "a", 1, func(c *Config) { c.TLS, c.KeyBytes = all["a"], most })
	b, seen := w.settle(t, "b", 1, func(c *Config) { c.TLS = all["b"] })
	a.Hold("b", Control, b.Addr())
	const frames = 4000
	var want []string
	for i := range frames {
		text := fmt.Sprintf("%50d", i)
		want = append(want, fmt.Sprintf("1 %s", text))
		send(t, a, "b", Control, 1, text, 0)
		if i%500 == 0 {
			await(t, "the frames so far", func() bool { return len(seen.frames()) == i+1 })
		}
	}
	await(t, "all frames", func() bool { return len(seen.frames()) == frames })
	if got := seen.frames(); !slices.Equal(texts(got), texts(want)) {
		t.Errorf("%d frames, not those that were sent in their order", len(got))
	}
	if n := a.Counters().Renewed; n < 5 {
		t.Errorf("for %d bytes the connection was replaced %d times, with %d for each", frames*50, n, most)
	}
	for _, err := range seen.downs() {
		if !errors.Is(err, peering.ErrDone) {
			t.Errorf("a connection ended: %v", err)
		}
	}
}

// texts returns the last 50 bytes of frames.
func texts(frames []string) (all []string) {
	for _, f := range frames {
		all = append(all, f[max(0, len(f)-50):])
	}
	return all
}

// certificates are two hosts' by one authority.
type certificates struct {
	*testing.T
	authority *pki.Authority
}

func newCertificates(t *testing.T) certificates {
	t.Helper()
	a, err := pki.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return certificates{t, a}
}

func (c certificates) files(host string, until time.Duration) pki.Files {
	c.Helper()
	dir := c.TempDir()
	f := pki.Files{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), CA: filepath.Join(dir, "ca.pem")}
	c.renew(f, host, until)
	if err := os.WriteFile(f.CA, c.authority.PEM(), 0o600); err != nil {
		c.Fatal(err)
	}
	return f
}

func (c certificates) renew(f pki.Files, host string, until time.Duration) {
	c.Helper()
	cert, key, err := c.authority.Issue(pki.Identity{Role: pki.Host, Name: host}, time.Now().Add(-time.Minute), time.Now().Add(until))
	if err = errors.Join(err, os.WriteFile(f.Cert, cert, 0o600), os.WriteFile(f.Key, key, 0o600)); err != nil {
		c.Fatal(err)
	}
}

func (c certificates) load(f pki.Files) *pki.Source {
	c.Helper()
	s, err := pki.Load(f, nil)
	if err != nil {
		c.Fatal(err)
	}
	return s
}

func (c certificates) revoke(path string, certs ...string) {
	c.Helper()
	var entries []x509.RevocationListEntry
	for _, file := range certs {
		text, err := os.ReadFile(file)
		if err != nil {
			c.Fatal(err)
		}
		block, _ := pem.Decode(text)
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			c.Fatal(err)
		}
		entries = append(entries, x509.RevocationListEntry{SerialNumber: cert.SerialNumber, RevocationTime: time.Now()})
	}
	list, err := c.authority.List(1, time.Now(), time.Now().Add(time.Hour), entries)
	if err = errors.Join(err, os.WriteFile(path, list, 0o600)); err != nil {
		c.Fatal(err)
	}
}

// TestConnectionsEndWithTheirCertificate: whoever has dialled, the other side's end ends it,
// and so does its revocation; and it does not come back.
func TestConnectionsEndWithTheirCertificate(t *testing.T) {
	for name, dials := range map[string]bool{"it has dialled": true, "it was called": false} {
		for _, want := range []error{pki.ErrRevoked, pki.ErrExpired} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				newCertificates(t).end(dials, want)
			})
		}
	}
}

// end has a's connection with b end for a reason.
func (c certificates) end(dials bool, want error) {
	lists := filepath.Join(c.TempDir(), "revoked.pem")
	c.revoke(lists)
	own, theirs := c.files("a", time.Hour), c.files("b", time.Hour)
	if want == pki.ErrExpired {
		theirs = c.files("b", 3*time.Second)
	}
	own.Revoked = lists
	w := newTown()
	a, seen := w.settle(c.T, "a", 1, func(k *Config) { k.TLS = c.load(own) })
	b, ofB := w.settle(c.T, "b", 1, func(k *Config) { k.TLS = c.load(theirs) })
	if dials {
		send(c.T, b, "a", Control, 1, "hello", 1)
		await(c.T, "the frame", func() bool { return len(seen.frames()) == 1 })
	} else {
		send(c.T, a, "b", Control, 1, "hello", 1)
		await(c.T, "the frame", func() bool { return len(ofB.frames()) == 1 })
	}
	if want == pki.ErrRevoked {
		c.revoke(lists, theirs.Cert)
	}
	await(c.T, "its end", func() bool { return len(seen.downs()) == 1 })
	if err := seen.downs()[0]; !errors.Is(err, want) {
		c.Errorf("%v, want %v", err, want)
	}
	send(c.T, a, "b", Control, 1, "again", 7)
	await(c.T, "the call to fail", func() bool { _, ok := seen.outcome(7); return ok })
	if err, _ := seen.outcome(7); err == nil {
		c.Error("a frame was sent after it")
	}
}

// TestRenewedCertificatesReplaceConnections: before the old one ends, so that nothing breaks.
// Where the machine is too slow for that once, the next certificate is as good.
func TestRenewedCertificatesReplaceConnections(t *testing.T) {
	t.Parallel()
	c := newCertificates(t)
	const life = 8 * time.Second
	own := c.files("a", life)
	w := newTown()
	a, _ := w.settle(t, "a", 1, func(k *Config) { k.TLS = c.load(own) })
	b, seen := w.settle(t, "b", 1, func(k *Config) { k.TLS = c.load(c.files("b", time.Hour)) })
	a.Hold("b", Control, b.Addr())
	next := time.Now().Add(life / 4)
	await(t, "the end of one that was replaced, and another one", func() bool {
		if now := time.Now(); now.After(next) {
			c.renew(own, "a", life)
			next = now.Add(life / 4)
		}
		return len(seen.ups()) > 1 && slices.ContainsFunc(seen.downs(), func(err error) bool { return errors.Is(err, peering.ErrDone) })
	})
	if n := a.Counters().Renewed; n == 0 {
		t.Error("none is counted")
	}
}

// TestRenewalIsDueBeforeTheAnswer: a call whose answer comes when its certificate has ended
// already, and there is another, is replaced as soon as it is a connection.
func TestRenewalIsDueBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	c := newCertificates(t)
	const life = 2 * time.Second
	own := c.files("a", time.Hour)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	w := newTown()
	w.set("b", listener.Addr().String())
	a, _ := w.settle(t, "a", 1, func(k *Config) { k.TLS = c.load(own) })
	ends := time.Now().Add(life)
	c.renew(own, "a", life)
	a.Hold("b", Control, listener.Addr().String())
	source := c.load(c.files("b", time.Hour))
	var b *tls.Conn
	for b == nil {
		raw, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		b = tls.Server(raw, source.Server())
		if _, err := greeting.Read(b); err != nil { // on a slow machine the certificate has ended before it came
			_ = b.Close()
			b, ends = nil, time.Now().Add(life)
			c.renew(own, "a", life)
		}
	}
	c.renew(own, "a", time.Hour)
	await(t, "the certificate's end", func() bool { return time.Now().After(ends) })
	if _, err := b.Write((&greeting.Answer{Incarnation: 1}).Append(nil)); err != nil {
		t.Fatal(err)
	}
	await(t, "another one", func() bool { return a.Counters().Renewed == 1 })
}
