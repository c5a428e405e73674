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
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr()+path, nil)
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
		"/metrics":                       "apples_total 7",
		"/healthz":                       "ok\n",
		"/pears":                         "pears 3",
		"/debug/pprof/":                  "goroutine",
		"/debug/pprof/heap?debug=1":      "heap profile",
		"/debug/pprof/goroutine?debug=1": "goroutine profile",
		"/debug/pprof/cmdline":           "test",
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
