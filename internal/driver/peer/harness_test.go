package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// patience ends a test that would wait for ever; no test waits for it to pass.
const patience = 30 * time.Second

// await waits for a condition.
func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); runtime.Gosched() {
		if time.Now().After(end) {
			buf := make([]byte, 1<<20)
			t.Fatalf("gave up waiting for %s\n%s", what, buf[:runtime.Stack(buf, true)])
		}
	}
}

// town is where hosts are.
type town struct {
	mu        sync.Mutex
	addresses map[string]string
}

var errNowhere = errors.New("nobody knows where that is")

func newTown() *town { return &town{addresses: map[string]string{}} }

func (w *town) resolve(_ context.Context, host string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a, ok := w.addresses[host]; ok {
		return a, nil
	}
	return "", errNowhere
}

func (w *town) set(host, address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addresses[host] = address
}

const testService = Collectives

var discard = slog.New(slog.DiscardHandler)

// witness is a service that remembers.
type witness struct {
	mu        sync.Mutex
	keeps     bool // bursts are not released before the end
	got       []string
	gotBytes  int
	up        []Peer
	conns     []*Conn
	down      []error
	sent      map[uint64]error
	reported  int
	restarted []string
	onFrames  func(*Conn, []Frame)
	bursts    []*Burst
}

func (w *witness) Up(c *Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.up, w.conns = append(w.up, c.Peer()), append(w.conns, c)
}

func (w *witness) Received(c *Conn, frames []Frame, b *Burst) {
	w.mu.Lock()
	on := w.onFrames
	for _, f := range frames {
		w.gotBytes += len(f.Bytes)
		if len(f.Bytes) <= 64 {
			w.got = append(w.got, fmt.Sprintf("%s %d/%d %s", c.Peer().Name, c.Class(), f.Stream, f.Bytes))
		}
	}
	if w.keeps {
		w.bursts = append(w.bursts, b)
	}
	keeps := w.keeps
	w.mu.Unlock()
	if on != nil {
		on(c, frames)
	}
	if !keeps {
		b.Release()
	}
}

func (w *witness) Down(_ *Conn, reason error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = append(w.down, reason)
}

func (w *witness) Failed(string, Class, error) {}

func (w *witness) Sent(numbers []uint64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range numbers {
		if _, twice := w.sent[n]; twice {
			panic(fmt.Sprintf("frame %d is reported twice", n))
		}
		w.sent[n] = err
		w.reported++
	}
}

func (w *witness) Restarted(host string, before, incarnation uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.restarted = append(w.restarted, fmt.Sprintf("%s %d after %d", host, incarnation, before))
}

// copied returns what others append to.
func copied[T any](mu *sync.Mutex, all *[]T) []T {
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(*all)
}

func (w *witness) frames() []string { return copied(&w.mu, &w.got) }

func (w *witness) ups() []Peer { return copied(&w.mu, &w.up) }

func (w *witness) downs() []error { return copied(&w.mu, &w.down) }

func (w *witness) outcome(number uint64) (error, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	err, ok := w.sent[number]
	return err, ok
}

// settle makes a host with a witness. When the test ends it is closed, and nothing may
// be left.
func (w *town) settle(t testing.TB, name string, incarnation uint64, change func(*Config)) (*Host, *witness) {
	t.Helper()
	seen := &witness{sent: map[uint64]error{}}
	c := Config{
		Name: name, Incarnation: incarnation, Listen: "127.0.0.1:0", Resolve: w.resolve,
		Handlers:    map[Service]Handler{testService: seen},
		GreetWithin: patience, DeadAfter: patience, Log: discard,
	}
	if change != nil {
		change(&c)
	}
	h, err := Listen(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		for _, b := range seen.bursts {
			b.Release()
		}
		if k := h.Counters(); k.Open != 0 || k.Bursts != 0 {
			t.Errorf("%s is closed and holds %+v", name, k)
		}
	})
	w.set(name, h.Addr())
	return h, seen
}

// send sends a frame.
func send(t testing.TB, h *Host, to string, class Class, stream uint32, text string, number uint64) {
	t.Helper()
	l := h.Channel(to, class)
	if err := l.Send(&Send{Service: testService, Stream: stream, Body: []byte(text), Number: number}); err != nil {
		t.Fatal(err)
	}
	if w, ok := h.services[testService].Load().handler.(*witness); ok {
		if done := l.Flush(testService, nil); len(done) > 0 {
			w.Sent(done, nil)
		}
	}
}

// sources returns certificates of hosts by one authority.
func sources(t testing.TB, hosts ...string) map[string]*pki.Source {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "trust")
	ids := make([]pki.Identity, len(hosts))
	for i, h := range hosts {
		ids[i] = pki.Identity{Role: pki.Host, Name: h}
	}
	if _, err := pki.Init(dir, ids...); err != nil {
		t.Fatal(err)
	}
	all := map[string]*pki.Source{}
	for _, id := range ids {
		s, err := pki.Load(pki.Files{Cert: filepath.Join(dir, pki.CertFile(id)), Key: filepath.Join(dir, pki.KeyFile(id)), CA: filepath.Join(dir, pki.AuthorityFile)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		all[id.Name] = s
	}
	return all
}

// eachTrust runs a test in plaintext and under TLS.
func eachTrust(t *testing.T, run func(t *testing.T, trust func(name string) func(*Config))) {
	t.Run("plaintext", func(t *testing.T) { run(t, func(string) func(*Config) { return func(*Config) {} }) })
	t.Run("tls", func(t *testing.T) {
		all := sources(t, "a", "b", "c")
		run(t, func(name string) func(*Config) { return func(c *Config) { c.TLS = all[name] } })
	})
}

// dialRaw connects as somebody who is no host.
func dialRaw(t testing.TB, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { conn.Close() })
	return conn
}
