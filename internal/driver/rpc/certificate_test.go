package rpc

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/tributary-fabric/tributary/internal/check/logtest"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// bubble is a manager's server and who calls it, in the bubble of a test.
type bubble struct {
	*testing.T
	authority authority
	listener  *bufconn.Listener
	server    *Server
	log       *logtest.Log
	revoked   string // file of revocation lists
}

func newBubble(t *testing.T, s Services, l Limits) *bubble {
	b := &bubble{T: t, authority: newAuthority(t), listener: bufconn.Listen(1 << 20), log: new(logtest.Log)}
	b.revoked = filepath.Join(t.TempDir(), "revoked.pem")
	b.revoke()
	files := b.issue(pki.Identity{Role: pki.Manager, Name: "m"}, 1000*time.Hour)
	files.Revoked = b.revoked
	log := slog.New(slog.NewTextHandler(b.log, nil))
	source, err := pki.Load(files, log)
	if err != nil {
		t.Fatal(err)
	}
	b.server = Serve(b.listener, s, ServerConfig{TLS: source.Server(), Trust: source, Limits: l, Log: log})
	return b
}

func (b *bubble) issue(i pki.Identity, until time.Duration) pki.Files {
	b.Helper()
	dir := b.TempDir()
	f := pki.Files{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), CA: filepath.Join(dir, "ca.pem")}
	b.renew(f, i, until)
	if err := os.WriteFile(f.CA, b.authority.PEM(), 0o600); err != nil {
		b.Fatal(err)
	}
	return f
}

func (b *bubble) renew(f pki.Files, i pki.Identity, until time.Duration) {
	b.Helper()
	cert, key := b.authority.issue(i, -time.Minute, until)
	if err := errors.Join(os.WriteFile(f.Cert, cert, 0o600), os.WriteFile(f.Key, key, 0o600)); err != nil {
		b.Fatal(err)
	}
}

// revoke writes a revocation list with the certificates in files.
func (b *bubble) revoke(certs ...string) {
	b.Helper()
	var entries []x509.RevocationListEntry
	for _, file := range certs {
		text, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		block, _ := pem.Decode(text)
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			b.Fatal(err)
		}
		entries = append(entries, x509.RevocationListEntry{SerialNumber: cert.SerialNumber, RevocationTime: time.Now()})
	}
	list, err := b.authority.List(int64(1+len(certs)), time.Now(), time.Now().Add(1000*time.Hour), entries)
	if err == nil {
		err = os.WriteFile(b.revoked, list, 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bubble) dial(f pki.Files) *ManagerClient {
	b.Helper()
	source, err := pki.Load(f, nil)
	if err != nil {
		b.Fatal(err)
	}
	m, err := DialManager("passthrough:///manager", ClientConfig{TLS: source.Client(pki.Want{Role: pki.Manager}), Trust: source, dialer: b.reach})
	if err != nil {
		b.Fatal(err)
	}
	return m
}

func (b *bubble) reach(ctx context.Context, _ string) (net.Conn, error) {
	return b.listener.DialContext(ctx)
}

// TestCallsGoOnWhileCertificatesAreRenewed: of a client that renews its certificate of an hour
// after 40 minutes, no call fails in hours. A stream ends with the certificate by which it
// was opened, and is opened again at once.
func TestCallsGoOnWhileCertificatesAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, Services{Manager: &fakeManager{}}, Limits{})
		defer b.server.Kill()
		id := pki.Identity{Role: pki.Operator, Name: "o"}
		files := b.issue(id, time.Hour)
		m := b.dial(files)
		defer m.Close()
		var lives []time.Duration
		stream := openSession(t, m)
		began := time.Now()
		for passed := time.Duration(0); passed < 5*time.Hour; passed += 10 * time.Second {
			if passed%(40*time.Minute) == 0 && passed > 0 {
				b.renew(files, id, time.Hour)
			}
			if err := m.ReleaseGroup(testContext(t), 7); err != nil {
				t.Fatalf("after %v: %v", passed, err)
			}
			select {
			case err := <-stream:
				if !errors.Is(err, ErrUnavailable) {
					t.Errorf("after %v the stream ended: %v", passed, err)
				}
				lives = append(lives, time.Since(began))
				stream, began = openSession(t, m), time.Now()
			default:
			}
			<-time.After(10 * time.Second)
		}
		if len(lives) < 4 {
			t.Errorf("streams ended after %v", lives)
		}
		for _, life := range lives {
			if life > time.Hour+20*time.Second || life < 20*time.Minute {
				t.Errorf("a stream lived %v", life)
			}
		}
	})
}

// openSession opens a stream that the manager serves until its end, which it returns.
func openSession(t *testing.T, m *ManagerClient) <-chan error {
	t.Helper()
	s, err := m.HostSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		for {
			if _, err := s.Recv(); err != nil {
				ended <- err
				return
			}
		}
	}()
	return ended
}

// TestConnectionsEndWithTheirCertificate: a certificate that is not renewed, and one that is
// revoked, end what runs by them, and no other; nothing new begins by them.
func TestConnectionsEndWithTheirCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, Services{Manager: &fakeManager{}}, Limits{})
		defer b.server.Kill()
		open := func(name string, until time.Duration) (pki.Files, *ManagerClient, <-chan error) {
			files := b.issue(pki.Identity{Role: pki.Operator, Name: name}, until)
			m := b.dial(files)
			t.Cleanup(func() { _ = m.Close() })
			return files, m, openSession(t, m)
		}
		_, short, ofShort := open("short", time.Hour)
		bad, banned, ofBad := open("bad", 100*time.Hour)
		_, good, ofGood := open("good", 100*time.Hour)
		ends := func(stream <-chan error) bool {
			synctest.Wait()
			select {
			case <-stream:
				return true
			default:
				return false
			}
		}
		<-time.After(time.Hour - time.Second)
		if ends(ofShort) {
			t.Error("it ended before its certificate")
		}
		<-time.After(2 * time.Second)
		if !ends(ofShort) {
			t.Error("it outlives its certificate")
		}
		if err := short.ReleaseGroup(testContext(t), 7); err == nil || !strings.Contains(err.Error(), pki.ErrExpired.Error()) {
			t.Errorf("with an expired certificate: %v", err)
		}
		b.revoke(bad.Cert)
		<-time.After(6 * time.Second)
		if !ends(ofBad) {
			t.Error("it outlives its revocation")
		}
		if err := banned.ReleaseGroup(testContext(t), 7); err == nil {
			t.Error("with a revoked certificate a call succeeded")
		}
		if ends(ofGood) {
			t.Error("another's ended")
		}
		if err := good.ReleaseGroup(testContext(t), 7); err != nil {
			t.Error(err)
		}
		for _, says := range []string{"connection closed", "has expired: tributary://operator/short", "is revoked: tributary://operator/bad"} {
			if !strings.Contains(b.log.String(), says) {
				t.Errorf("the log lacks %q: %s", says, b.log)
			}
		}
		_, _ = short.Close(), banned.Close()
	})
}

// TestAServersCertificateEndsItsConnections: the client sees to that.
func TestAServersCertificateEndsItsConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, Services{Manager: &fakeManager{}}, Limits{})
		defer b.server.Kill()
		m := b.dial(b.issue(pki.Identity{Role: pki.Operator, Name: "o"}, 2000*time.Hour))
		<-time.After(999 * time.Hour)
		stream := openSession(t, m)
		<-time.After(59 * time.Minute)
		select {
		case err := <-stream:
			t.Errorf("before its end: %v", err)
		default:
		}
		<-time.After(2 * time.Minute)
		if err := <-stream; !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "has expired: tributary://manager/m") {
			t.Errorf("%v", err)
		}
		_ = m.Close()
	})
}
