package attack_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/driver/admin"
)

// testAdmin: requests to the pages of metrics, health and members, with every part forged. They change nothing,
// whatever they say; only pages are answered, to GET and HEAD; and the pages are there afterwards.
func (f *fabric) testAdmin(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 9))
	metrics, err := admin.NewMetrics(slog.New(slog.DiscardHandler), f.manager.Collector())
	if err != nil {
		t.Fatal(err)
	}
	s, err := admin.Start(admin.Config{Metrics: metrics, Pages: map[string]http.Handler{"/members": f.hosts[0].Members()}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	r := f.matrix.of("nothing", "admin HTTP")
	say := func(what string, b []byte) {
		conn, _ := f.dial(s.Addr(), nil)
		answer := f.exchange(conn, b)
		r.tried, r.in, r.out = r.tried+1, r.in+len(b), r.out+len(answer)
		a, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(answer)), nil)
		if err != nil || a.StatusCode >= http.StatusMultipleChoices { // or it is sent elsewhere, to ask again
			r.refused++
			return
		}
		defer func() { _ = a.Body.Close() }()
		r.answered++
		method, _, _ := strings.Cut(string(b), " ")
		if method != http.MethodGet && method != http.MethodHead && a.ContentLength != 0 {
			t.Errorf("%s: %.100q is answered by %.200q", what, b, answer)
		}
	}
	f.under(t, func() {
		for _, page := range []string{"/healthz", "/metrics", "/members", "/", "/debug/", "/../members", "//members", "*", "http://h0/members"} {
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PRI", "get"} {
				line := fmt.Sprintf("%s %s HTTP/1.1\r\n", method, page)
				say(line, []byte(line+"Host: h0\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc"))
			}
		}
		text := "GET /members HTTP/1.1\r\nHost: h0\r\nConnection: close\r\n\r\n"
		m := message{name: "request", bytes: []byte(text), fields: words(len(text), 3)}
		for _, x := range fewer(m.forge(nil, random)) {
			say(x.what, x.bytes)
		}
		for _, header := range []string{
			"X-Y: " + strings.Repeat("x", 2<<20), strings.Repeat("X: y\r\n", 1<<15), "Transfer-Encoding: chunked\r\nContent-Length: 5", "Content-Length: -1",
			"Content-Length: 99999999999999999999", "Upgrade: h2c", "Host: x", "Range: bytes=0-,0-,0-",
		} {
			say(header[:5], []byte("GET /members HTTP/1.1\r\nHost: h0\r\nConnection: close\r\n"+header+"\r\n\r\n"))
		}
	})
	for _, page := range []string{"/healthz", "/metrics", "/members"} {
		a, err := http.Get("http://" + s.Addr() + page)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(a.Body); err != nil || a.StatusCode != http.StatusOK {
			t.Errorf("%s: %s, %q, %v", page, a.Status, b, err)
		}
		_ = a.Body.Close()
	}
}
