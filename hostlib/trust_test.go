package hostlib

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

// TestFinding1RankIsItsCertificatesHost: with certificates members form a group and
// reduce under TLS. Who has none, has another host's, or says that it is a rank which it is
// not, is refused, with a reason.
func TestFinding1RankIsItsCertificatesHost(t *testing.T) {
	names := []string{"h0", "h1", "h2"}
	files := trusted(t, names...)
	hosts, members := make([]*Host, 2), make([]Member, 2)
	for i := range hosts {
		hosts[i] = joinOne(t, names[i], func(c *Config) { c.TLS = files[names[i]] })
		members[i] = hosts[i].Member()
	}
	comms := form(t, "test", hosts, members)
	sum(t, comms, 100_000)

	h2 := files["h2"]
	source, err := pki.Load(pki.Files{Cert: h2.Cert, Key: h2.Key, CA: h2.CA}, nil)
	if err != nil {
		t.Fatal(err)
	}
	call := func(isSecure bool, name string) (net.Conn, greeting.Answer, error) {
		conn, err := net.Dial("tcp", hosts[0].Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(patience))
		if isSecure {
			conn = tls.Client(conn, source.Client(pki.Want{Role: pki.Host, Name: "h0"}))
		}
		g := greeting.Greeting{Class: uint8(peer.Control), From: name, Incarnation: 1, To: "h0", Call: 1}
		if _, err := conn.Write(g.Append(nil)); err != nil {
			t.Fatal(err)
		}
		answer, err := greeting.ReadAnswer(conn)
		return conn, answer, err
	}
	if _, a, err := call(false, "h1"); err != nil || a.Code != greeting.Refuse || !strings.Contains(a.Reason, "TLS alone") {
		t.Errorf("without a certificate: %+v, %v", a, err)
	}
	if _, a, err := call(true, "h1"); err != nil || a.Code != greeting.Refuse || !strings.Contains(a.Reason, `"h2"'s`) {
		t.Errorf("under another's name: %+v, %v", a, err)
	}
	conn, a, err := call(true, "h2")
	if err != nil || a.Code != greeting.Accept {
		t.Fatalf("%+v, %v", a, err)
	}
	conn.Close()
	f := newFake(t, "h2", hosts[0], func(c *peer.Config) { c.TLS, c.Incarnation = source, 2 })
	w := opening("test", members, 5)
	w.group = comms[0].group
	if a := f.answer(peer.Control, w); a.kind != refuses || !strings.Contains(string(a.rest), "not the caller's parent") {
		t.Errorf("h2 as rank 1: answered by %+v, %s", a, a.rest)
	}
	sum(t, comms, 10)
	leave(t, comms)
}

// TestFinding7PlaintextIsAskedFor: without certificates a host serves loopback addresses
// alone, unless others are asked for by name.
func TestFinding7PlaintextIsAskedFor(t *testing.T) {
	if _, err := Join(t.Context(), Config{Name: "h0", Listen: "0.0.0.0:0"}); !errors.Is(err, peer.ErrPlaintext) {
		t.Errorf("it serves everybody: %v", err)
	}
	joinOne(t, "h0", func(c *Config) { c.Listen, c.AllowPlaintext = "0.0.0.0:0", true })
}
