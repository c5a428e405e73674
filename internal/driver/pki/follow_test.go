package pki_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-fabric/tributary/internal/check/logtest"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// followed is one side of a connection that its Source follows.
type followed struct {
	mu      sync.Mutex
	ended   []error
	renewed int
	release func()
}

// side is that of a connection.
type side struct {
	*tls.Conn
	by pki.Handshake
}

func follow(c side) *followed {
	f := &followed{}
	f.release = c.by.Follow(c.ConnectionState(), "there", func(err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ended = append(f.ended, err)
	}, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.renewed++
	})
	return f
}

// is reports how often the connection was renewed, and why it has ended, if it has.
func (f *followed) is(t *testing.T) (renewed int, ended error) {
	t.Helper()
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ended) > 1 {
		t.Errorf("it ended %d times: %v", len(f.ended), f.ended)
	}
	return f.renewed, errors.Join(f.ended...)
}

// join connects two sides over a pipe, in a bubble.
func join(t *testing.T, server, client *pki.Source) (s, c side) {
	t.Helper()
	a, b := net.Pipe()
	t.Cleanup(func() { a.Close(); b.Close() })
	s.by, c.by = server.Begin(), client.Begin()
	s.Conn, c.Conn = tls.Server(a, s.by.Server()), tls.Client(b, c.by.Client(pki.Want{}))
	done := make(chan error, 1)
	go func() { done <- s.Handshake() }()
	if err := errors.Join(c.Handshake(), <-done); err != nil {
		t.Fatal(err)
	}
	return s, c
}

// TestConnectionsEndWithTheirCertificate: at its end, and not before; each side sees to the
// other's certificate.
func TestConnectionsEndWithTheirCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logtest.Log
		a := newAuthority(t)
		server := issue(t, a, agentID, -time.Hour, 48*time.Hour).load(t, slog.New(slog.NewTextHandler(&log, nil)))
		client := issue(t, a, managerID, -time.Hour, time.Hour).load(t, nil)
		s, c := join(t, server, client)
		atServer, atClient := follow(s), follow(c)
		defer atClient.release()
		<-time.After(time.Hour - time.Second)
		if _, err := atServer.is(t); err != nil {
			t.Errorf("before its end: %v", err)
		}
		<-time.After(2 * time.Second)
		if _, err := atServer.is(t); !errors.Is(err, pki.ErrExpired) || !strings.Contains(err.Error(), managerID.String()) {
			t.Errorf("after its end: %v", err)
		}
		if text := log.String(); strings.Count(text, "connection closed") != 1 || !strings.Contains(text, "from=there") {
			t.Errorf("the log says %q", text)
		}
		if _, err := atClient.is(t); err != nil {
			t.Errorf("the server's is valid: %v", err)
		}
	})
}

// TestAnAuthoritysEndEndsItsConnections: what a certificate rests upon counts, too.
func TestAnAuthoritysEndEndsItsConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t)
		server := issue(t, a, agentID, -time.Hour, 2*pki.AuthorityLife).load(t, nil)
		client := issue(t, a, managerID, -time.Hour, 2*pki.AuthorityLife).load(t, nil)
		<-time.After(pki.AuthorityLife - 10*time.Minute)
		s, _ := join(t, server, client)
		f := follow(s)
		<-time.After(9 * time.Minute)
		if _, err := f.is(t); err != nil {
			t.Error(err)
		}
		<-time.After(2 * time.Minute)
		if _, err := f.is(t); !errors.Is(err, pki.ErrExpired) {
			t.Error(err)
		}
	})
}

// TestReleasedConnectionsAreNotFollowed: nothing is called, and no timer runs on.
func TestReleasedConnectionsAreNotFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t)
		server, client := valid(t, a, agentID), valid(t, a, managerID)
		for range 2 {
			s, _ := join(t, server, client)
			f := follow(s)
			<-time.After(time.Minute)
			f.release()
			f.release()
			<-time.After(time.Minute)
			if renewed, err := f.is(t); renewed != 0 || err != nil {
				t.Error(renewed, err)
			}
		}
	})
}

// TestRenewal: connections are made again before the own certificate ends by which they were
// made, once there is another, and not all at once.
func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t)
		f := issue(t, a, managerID, -time.Hour, time.Hour)
		server, client := issue(t, a, agentID, -time.Hour, 48*time.Hour).load(t, nil), f.load(t, nil)
		var all []*followed
		for range 20 {
			_, c := join(t, server, client)
			one := follow(c)
			defer one.release()
			all = append(all, one)
		}
		renewed := func() (n int) {
			for _, one := range all {
				times, err := one.is(t)
				if err != nil || times > 1 {
					t.Fatalf("renewed %d times: %v", times, err)
				}
				n += times
			}
			return n
		}
		<-time.After(49 * time.Minute)
		f.renew(t, a, managerID, -time.Hour, time.Hour)
		if n := renewed(); n != 0 {
			t.Errorf("%d at once", n)
		}
		<-time.After(3*time.Minute + 30*time.Second) // of the 5 from 50 to 55
		if n := renewed(); n == 0 || n == len(all) {
			t.Errorf("%d of %d, want some", n, len(all))
		}
		<-time.After(3 * time.Minute)
		if n := renewed(); n != len(all) {
			t.Errorf("%d of %d", n, len(all))
		}
		_, c := join(t, server, client)
		late := follow(c)
		defer late.release()
		<-time.After(30 * time.Minute)
		if n, err := late.is(t); n != 0 || err != nil {
			t.Errorf("with the new certificate: renewed %d times, %v", n, err)
		}
		<-time.After(23 * time.Minute)
		f.renew(t, a, managerID, -time.Hour, time.Hour)
		<-time.After(6 * time.Second) // late: it is used as soon as it is there
		if n, err := late.is(t); n != 1 || err != nil {
			t.Errorf("renewed late: %d times, %v", n, err)
		}
	})
}

// revoke writes a revocation list that has the certificates in files.
func revoke(t *testing.T, path string, a *pki.Authority, next time.Duration, certs ...string) {
	t.Helper()
	write(t, path, listOf(t, a, next, certs...))
}

func listOf(t *testing.T, a *pki.Authority, next time.Duration, certs ...string) []byte {
	t.Helper()
	var entries []x509.RevocationListEntry
	for _, file := range certs {
		entries = append(entries, entryOf(t, file))
	}
	text, err := a.List(1, time.Now(), time.Now().Add(next), entries)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// certOf is the certificate of a file.
func certOf(t *testing.T, file string) *x509.Certificate {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// entryOf is that of a certificate's file in a list.
func entryOf(t *testing.T, file string) x509.RevocationListEntry {
	t.Helper()
	return x509.RevocationListEntry{SerialNumber: certOf(t, file).SerialNumber, RevocationTime: time.Now()}
}

// withLists loads f with a file of revocation lists.
func (f files) withLists(t *testing.T, path string, log *slog.Logger) *pki.Source {
	t.Helper()
	s, err := pki.Load(pki.Files{Cert: f.cert, Key: f.key, CA: f.ca, Revoked: path}, log)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRevokedConnectionsAreClosed: within seconds after the file has changed, and no others.
func TestRevokedConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t)
		lists := filepath.Join(t.TempDir(), "revoked.pem")
		revoke(t, lists, a, 24*time.Hour)
		server := issue(t, a, agentID, -time.Hour, 24*time.Hour).withLists(t, lists, nil)
		bad, good := issue(t, a, managerID, -time.Hour, 24*time.Hour), issue(t, a, hostID, -time.Hour, 24*time.Hour)
		toBad, _ := join(t, server, bad.load(t, nil))
		toGood, _ := join(t, server, good.load(t, nil))
		ofBad, ofGood := follow(toBad), follow(toGood)
		defer ofGood.release()
		<-time.After(time.Hour)
		if _, err := ofBad.is(t); err != nil {
			t.Error(err)
		}
		revoke(t, lists, a, 24*time.Hour, bad.cert)
		<-time.After(6 * time.Second)
		if _, err := ofBad.is(t); !errors.Is(err, pki.ErrRevoked) || !strings.Contains(err.Error(), managerID.String()) {
			t.Errorf("revoked: %v", err)
		}
		if _, err := ofGood.is(t); err != nil {
			t.Errorf("another's: %v", err)
		}
	})
}

// TestAnAuthorityThatIsGoneEndsItsConnections: who replaces an authority excludes all of its
// certificates, with the connections that they have.
func TestAnAuthorityThatIsGoneEndsItsConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newAuthority(t), newAuthority(t)
		f := issue(t, b, agentID, -time.Hour, 24*time.Hour)
		write(t, f.ca, append(a.PEM(), b.PEM()...))
		server := f.load(t, nil)
		g := issue(t, a, managerID, -time.Hour, 24*time.Hour)
		write(t, g.ca, b.PEM())
		client, err := pki.Load(pki.Files{Cert: g.cert, Key: g.key, CA: f.ca}, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, _ := join(t, server, client)
		at := follow(s)
		write(t, f.ca, b.PEM())
		<-time.After(6 * time.Second)
		if _, err := at.is(t); !errors.Is(err, pki.ErrAuthority) {
			t.Error(err)
		}
	})
}

// TestASecretThatIsGoneEndsItsConnections: the same of those that share a secret.
func TestASecretThatIsGoneEndsItsConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, now := [32]byte{1}, [32]byte{2}
		server, err := pki.Shared(hostID, now, old)
		if err != nil {
			t.Fatal(err)
		}
		var at [2]*followed
		for i, secret := range [][32]byte{old, now} {
			client, err := pki.Shared(hostID, secret, [32]byte{byte(2 - i)})
			if err != nil {
				t.Fatal(err)
			}
			s, _ := join(t, server, client)
			at[i] = follow(s)
		}
		defer at[1].release()
		if err := server.Share(now); err != nil {
			t.Fatal(err)
		}
		if _, err := at[0].is(t); !errors.Is(err, pki.ErrAuthority) {
			t.Errorf("of the old secret: %v", err)
		}
		if _, err := at[1].is(t); err != nil {
			t.Errorf("of the new one: %v", err)
		}
	})
}

// TestTheCertificateOfTheHandshakeCounts: files that are renewed between a handshake and its
// Follow do not make the connection's certificate valid any longer.
func TestTheCertificateOfTheHandshakeCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t)
		f := issue(t, a, managerID, -time.Hour, time.Hour)
		server, client := issue(t, a, agentID, -time.Hour, 48*time.Hour).load(t, nil), f.load(t, nil)
		_, c := join(t, server, client)
		f.renew(t, a, managerID, -time.Hour, 48*time.Hour)
		one := follow(c)
		defer one.release()
		<-time.After(56 * time.Minute)
		if n, err := one.is(t); n != 1 || err != nil {
			t.Errorf("it was renewed %d times: %v", n, err)
		}
	})
}

// TestOneThatWaitsDelaysNoOther: what a connection's end waits for is its own affair.
func TestOneThatWaitsDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t)
		server, client := issue(t, a, agentID, -time.Hour, 48*time.Hour).load(t, nil), issue(t, a, managerID, -time.Hour, time.Hour).load(t, nil)
		began := time.Now()
		var done sync.WaitGroup
		for range 100 {
			s, _ := join(t, server, client)
			done.Add(1)
			server.Follow(s.ConnectionState(), "there", func(error) {
				defer done.Done()
				<-time.After(5 * time.Second) // as a TLS connection that cannot say that it ends
			})
		}
		done.Wait()
		if after := time.Since(began); after > time.Hour+6*time.Second {
			t.Errorf("100 connections have ended after %v", after)
		}
	})
}
