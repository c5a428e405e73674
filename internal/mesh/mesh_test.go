package mesh_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/loopback"
	"github.com/tributary-fabric/tributary/internal/mesh"
	"github.com/tributary-fabric/tributary/internal/pki"
)

// patience ends a test that would wait for ever; no test waits for it to pass.
const patience = 30 * time.Second

const echoLane = mesh.Lane(3)

// met is what a handler was told.
type met struct {
	mu  sync.Mutex
	all []mesh.Peer
}

func (m *met) peers() []mesh.Peer {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]mesh.Peer(nil), m.all...)
}

// echo returns what comes, and remembers who has called.
func (m *met) echo(_ context.Context, from mesh.Peer, conn net.Conn) {
	m.mu.Lock()
	m.all = append(m.all, from)
	m.mu.Unlock()
	_, _ = io.Copy(conn, conn)
}

type town struct {
	mu        sync.Mutex
	addresses map[string]string
}

var errNowhere = errors.New("nobody knows where that is")

func (w *town) resolve(node string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a, ok := w.addresses[node]; ok {
		return a, nil
	}
	return "", errNowhere
}

func (w *town) set(node, address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addresses[node] = address
}

// settle makes a node with an echo.
func (w *town) settle(t *testing.T, name string, incarnation uint64, source *pki.Source) (*mesh.Mesh, *met) {
	t.Helper()
	seen := &met{}
	m, err := mesh.Listen(t.Context(), mesh.Config{
		Self: mesh.Peer{Name: name, Incarnation: incarnation}, Listen: "127.0.0.1:0", Resolve: w.resolve, TLS: source,
		Lanes:       map[mesh.Lane]mesh.Handler{mesh.Urgent: seen.echo, echoLane: seen.echo},
		GreetWithin: patience, DeadAfter: patience, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	w.set(name, m.Addr())
	return m, seen
}

// awaitUnsound waits until so many calls were not taken.
func awaitUnsound(t *testing.T, m *mesh.Mesh, want uint64) {
	t.Helper()
	for end := time.Now().Add(patience); m.Unsound() != want; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d unsound calls, want %d", m.Unsound(), want)
		}
	}
}

func newTown() *town { return &town{addresses: map[string]string{}} }

// exchange checks that both ways of a connection are open.
func exchange(t *testing.T, conn net.Conn) {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(patience))
	said, heard := []byte("how do you do"), make([]byte, 13)
	if _, err := conn.Write(said); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, heard); err != nil || !bytes.Equal(said, heard) {
		t.Fatalf("%q, %v", heard, err)
	}
}

func TestBothKnowEachOther(t *testing.T) {
	w := newTown()
	a, _ := w.settle(t, "a", 7, nil)
	_, seen := w.settle(t, "b", 9, nil)
	for _, lane := range []mesh.Lane{mesh.Urgent, echoLane} {
		peer, conn, err := a.Dial(t.Context(), "b", lane)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		exchange(t, conn)
		if want := (mesh.Peer{Name: "b", Incarnation: 9}); peer != want {
			t.Errorf("the caller met %+v, want %+v", peer, want)
		}
		if all, want := seen.peers(), (mesh.Peer{Name: "a", Incarnation: 7}); all[len(all)-1] != want {
			t.Errorf("the called met %+v, want %+v", all, want)
		}
	}
}

func TestCallsThatAreNotTaken(t *testing.T) {
	w := newTown()
	a, _ := w.settle(t, "a", 1, nil)
	b, _ := w.settle(t, "b", 1, nil)
	w.set("c", b.Addr()) // where b is now
	w.set("nobody", loopback.Address(t))
	for name, c := range map[string]struct {
		node string
		lane mesh.Lane
		is   error
		says string
	}{
		"another there": {"c", echoLane, mesh.ErrRefused, "this is b, not c"},
		"no such lane":  {"b", 200, mesh.ErrRefused, "lane 200"},
		"no address":    {"d", echoLane, errNowhere, "d"},
		"nobody there":  {"nobody", echoLane, nil, "nobody"},
	} {
		_, conn, err := a.Dial(t.Context(), c.node, c.lane)
		if err == nil {
			conn.Close()
		}
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	awaitUnsound(t, b, 2)
}

// TestUnsoundGreetings: what does not keep to the format is refused by a reason,
// or not answered, and counted.
func TestUnsoundGreetings(t *testing.T) {
	w := newTown()
	a, seen := w.settle(t, "a", 1, nil)
	good := "TRIM\x02\x03\x00\x00\x00\x00\x00\x00\x00\x05\x01b\x01a\x00\x00\x00\x00\x00\x00\x00\x00"
	for i, c := range []struct{ text, says string }{
		{good, ""},
		{"GET / HTTP/1.1\r\n\r\n", "not of this protocol"},
		{"TRIM\x01" + good[5:], "version 1"},
		{strings.Replace(good, "\x01b", "\x00", 1), "no name"},
		{strings.Replace(good, "\x01a", "\x01x", 1), "this is a, not x"},
		{good[:len(good)-1], ""}, // and then silence: it hangs up
	} {
		conn, err := net.Dial("tcp", a.Addr())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(patience))
		_, _ = conn.Write([]byte(c.text))
		_ = conn.(*net.TCPConn).CloseWrite()
		answer, _ := io.ReadAll(conn)
		conn.Close()
		if i == 0 {
			if len(answer) != 10 || answer[0] != 0 || answer[8] != 1 {
				t.Errorf("a sound greeting is answered by %q", answer)
			}
		} else if len(answer) == 0 || answer[0] != 1 || !strings.Contains(string(answer), c.says) {
			t.Errorf("%q is answered by %q, want a refusal with %q", c.text, answer, c.says)
		}
	}
	awaitUnsound(t, a, 5)
	if all := seen.peers(); len(all) != 1 || all[0] != (mesh.Peer{Name: "b", Incarnation: 5}) {
		t.Errorf("met were %+v", all)
	}
}

// TestFormerIncarnation: a node that is called, and is known in a later incarnation
// than it has, refuses before anything is sent on the connection by either.
func TestFormerIncarnation(t *testing.T) {
	w := newTown()
	b, seen := w.settle(t, "b", 5, nil)
	a, err := mesh.Listen(t.Context(), mesh.Config{
		Self: mesh.Peer{Name: "a", Incarnation: 1}, Listen: "127.0.0.1:0", Resolve: w.resolve,
		Latest:      func(string) uint64 { return 7 },
		GreetWithin: patience, DeadAfter: patience, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, _, err := a.Dial(t.Context(), "b", echoLane); !errors.Is(err, mesh.ErrFormer) || !strings.Contains(err.Error(), "incarnation 5") {
		t.Errorf("%v", err)
	}
	awaitUnsound(t, b, 1)
	if all := seen.peers(); len(all) > 0 {
		t.Errorf("b has taken the call of %+v", all)
	}
}

// sources returns certificates of hosts by one authority.
func sources(t *testing.T, hosts ...string) map[string]*pki.Source {
	t.Helper()
	dir := t.TempDir()
	ids := make([]pki.Identity, len(hosts))
	for i, h := range hosts {
		ids[i] = pki.Identity{Role: pki.Host, Name: h}
	}
	if _, err := pki.Init(filepath.Join(dir, "trust"), ids...); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "trust")
	all := map[string]*pki.Source{}
	for _, id := range ids {
		s, err := pki.Load(filepath.Join(dir, pki.CertFile(id)), filepath.Join(dir, pki.KeyFile(id)), filepath.Join(dir, pki.AuthorityFile), nil)
		if err != nil {
			t.Fatal(err)
		}
		all[id.Name] = s
	}
	return all
}

// TestCertificates: who is met is who the certificate says.
func TestCertificates(t *testing.T) {
	trusted, other := sources(t, "a", "b", "c"), sources(t, "a")
	w := newTown()
	a, _ := w.settle(t, "a", 1, trusted["a"])
	b, seen := w.settle(t, "b", 2, trusted["b"])
	peer, conn, err := a.Dial(t.Context(), "b", echoLane)
	if err != nil {
		t.Fatal(err)
	}
	exchange(t, conn)
	conn.Close()
	if peer.Name != "b" || seen.peers()[0].Name != "a" {
		t.Errorf("met %+v and %+v", peer, seen.peers())
	}

	w.set("c", b.Addr())
	if _, _, err := a.Dial(t.Context(), "c", echoLane); !errors.Is(err, pki.ErrWrongRole) {
		t.Errorf("b is taken for c: %v", err)
	}
	stranger := newTown()
	stranger.set("b", b.Addr())
	s, _ := stranger.settle(t, "a", 1, other["a"])
	if _, _, err := s.Dial(t.Context(), "b", echoLane); err == nil {
		t.Error("a stranger has met b")
	}
	plain := newTown()
	plain.set("b", b.Addr())
	p, _ := plain.settle(t, "a", 1, nil)
	if _, _, err := p.Dial(t.Context(), "b", echoLane); err == nil {
		t.Error("somebody without a certificate has met b")
	}
	if _, err := mesh.Listen(t.Context(), mesh.Config{
		Self: mesh.Peer{Name: "a"}, Listen: "127.0.0.1:0", Resolve: w.resolve, TLS: trusted["b"],
		GreetWithin: patience, DeadAfter: patience, Log: slog.New(slog.DiscardHandler),
	}); !errors.Is(err, mesh.ErrConfig) || !errors.Is(err, pki.ErrWrongRole) {
		t.Errorf("a begins with b's certificate: %v", err)
	}
	if got := seen.peers(); len(got) != 1 {
		t.Errorf("b met %+v", got)
	}
}

func TestConfig(t *testing.T) {
	good := mesh.Config{
		Self: mesh.Peer{Name: "a"}, Resolve: newTown().resolve, Listen: "127.0.0.1:0",
		GreetWithin: patience, DeadAfter: patience, Log: slog.New(slog.DiscardHandler),
	}
	for name, spoil := range map[string]func(*mesh.Config){
		"no name":       func(c *mesh.Config) { c.Self.Name = "" },
		"a long name":   func(c *mesh.Config) { c.Self.Name = strings.Repeat("x", mesh.MaxName+1) },
		"no resolve":    func(c *mesh.Config) { c.Resolve = nil },
		"no time":       func(c *mesh.Config) { c.GreetWithin = 0 },
		"dead at once":  func(c *mesh.Config) { c.DeadAfter = 0 },
		"nowhere to be": func(c *mesh.Config) { c.Log = nil },
	} {
		c := good
		spoil(&c)
		if _, err := mesh.Listen(t.Context(), c); !errors.Is(err, mesh.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestClose: a closed node ends what others have called for, and calls nobody.
func TestClose(t *testing.T) {
	w := newTown()
	a, _ := w.settle(t, "a", 1, nil)
	b, _ := w.settle(t, "b", 1, nil)
	_, conn, err := a.Dial(t.Context(), "b", echoLane)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	exchange(t, conn)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
	if _, _, err := b.Dial(t.Context(), "a", echoLane); !errors.Is(err, mesh.ErrClosed) {
		t.Errorf("a closed node calls: %v", err)
	}
}
