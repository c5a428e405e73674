package admin_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/driver/admin"
	"github.com/tributary-fabric/tributary/internal/driver/loopback"
)

func start(t *testing.T, c admin.Config) *admin.Server {
	t.Helper()
	s, err := admin.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func get(t *testing.T, s *admin.Server, path string) (int, string) {
	t.Helper()
	return getAt(t, s.Addr(), path)
}

func getAt(t *testing.T, address, path string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func TestPages(t *testing.T) {
	apples := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "apples_total 7") })
	pears := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "pears 3") })
	s := start(t, admin.Config{Metrics: apples, Pages: map[string]http.Handler{"/pears": pears}})
	for path, want := range map[string]string{
		"/metrics": "apples_total 7",
		"/healthz": "ok\n",
		"/pears":   "pears 3",
	} {
		if code, text := get(t, s, path); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d, %.200q, want %q", path, code, text, want)
		}
	}
	for _, path := range []string{"/", "/metrics", "/metric"} {
		if code, _ := get(t, start(t, admin.Config{}), path); code != http.StatusNotFound {
			t.Errorf("%s of a server without metrics: %d", path, code)
		}
	}
}

// TestProfiles: they are at their own address, and never at that of the pages, whoever may
// reach it.
func TestProfiles(t *testing.T) {
	s := start(t, admin.Config{Listen: ":0", AllowRemote: true, Profiles: "127.0.0.1:0"})
	for path, want := range map[string]string{
		"/debug/pprof/":                  "goroutine",
		"/debug/pprof/heap?debug=1":      "heap profile",
		"/debug/pprof/goroutine?debug=1": "goroutine profile",
		"/debug/pprof/cmdline":           "test",
	} {
		if code, text := getAt(t, s.ProfilesAddr(), path); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d, %.200q, want %q", path, code, text, want)
		}
		if code, _ := get(t, s, path); code != http.StatusNotFound {
			t.Errorf("%s beside the metrics: %d", path, code)
		}
	}
	if code, _ := getAt(t, s.ProfilesAddr(), "/healthz"); code != http.StatusNotFound {
		t.Errorf("health beside the profiles: %d", code)
	}
	if at := start(t, admin.Config{}).ProfilesAddr(); at != "" {
		t.Errorf("nobody asked for profiles, and they are at %s", at)
	}
	for _, address := range []string{":0", "0.0.0.0:0", "192.0.2.1:0"} {
		c := admin.Config{Listen: "127.0.0.1:0", AllowRemote: true, Profiles: address}
		if s, err := admin.Start(c); !errors.Is(err, admin.ErrProfiles) || !strings.Contains(err.Error(), address) {
			t.Errorf("%s: %v, %v", address, s, err)
		}
		if err := c.Check(); !errors.Is(err, admin.ErrProfiles) {
			t.Errorf("check %s: %v", address, err)
		}
	}
	for _, c := range []admin.Config{{Listen: "127.0.0.1:0", Profiles: s.ProfilesAddr()}, {Listen: "127.0.0.1:0", Profiles: "127.0.0.1:0"}} {
		if err := c.Check(); err != nil { // the port aside
			t.Error(err)
		}
	}
	if s, err := admin.Start(admin.Config{Profiles: s.ProfilesAddr()}); err == nil {
		t.Errorf("a port in use: %v", s)
	}
}

// TestTooManyConnections: who holds more than his share is closed.
func TestTooManyConnections(t *testing.T) {
	s := start(t, admin.Config{})
	var refused bool
	for range 65 {
		c, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			refused = true
			continue
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			refused = true
		}
	}
	if !refused {
		t.Error("65 connections were served")
	}
}

func TestLargeHeader(t *testing.T) {
	s := start(t, admin.Config{})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr()+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X", strings.Repeat("x", 64<<10))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return // closed before the answer was read
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%s", answer.Status)
	}
}

func TestHealth(t *testing.T) {
	ill := errors.New("the listener failed")
	health := ill
	s := start(t, admin.Config{Health: func() error { return health }})
	if code, text := get(t, s, "/healthz"); code != http.StatusServiceUnavailable || text != ill.Error()+"\n" {
		t.Errorf("ill: %d, %q", code, text)
	}
	health = nil
	if code, text := get(t, s, "/healthz"); code != http.StatusOK || text != "ok\n" {
		t.Errorf("well: %d, %q", code, text)
	}
}

func TestLoopbackOnlyUnlessAllowed(t *testing.T) {
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0"} {
		if s, err := admin.Start(admin.Config{Listen: address}); !errors.Is(err, admin.ErrRemote) || !strings.Contains(err.Error(), address) {
			t.Errorf("%s: %v, %v", address, s, err)
		}
	}
	s := start(t, admin.Config{Listen: ":0", AllowRemote: true})
	_, port, err := net.SplitHostPort(s.Addr())
	if err != nil || port == "0" {
		t.Errorf("%s: %v", s.Addr(), err)
	}
}

func TestBadConfiguration(t *testing.T) {
	taken := start(t, admin.Config{})
	for name, c := range map[string]struct {
		admin.Config
		says string
	}{
		"a port in use": {admin.Config{Listen: taken.Addr()}, taken.Addr()},
		"no port":       {admin.Config{Listen: "127.0.0.1"}, "127.0.0.1"},
	} {
		if s, err := admin.Start(c.Config); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v, want %q", name, s, err, c.says)
		}
	}
}

func TestClose(t *testing.T) {
	s := start(t, admin.Config{Listen: loopback.Address(t)})
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if conn, err := net.Dial("tcp", s.Addr()); err == nil {
		conn.Close()
		t.Error("it still listens")
	}
}
