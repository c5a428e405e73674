package membership

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// certificates makes those of hosts, by one authority.
func certificates(t *testing.T, hosts ...string) func(host string) *TLS {
	t.Helper()
	dir := t.TempDir()
	ids := make([]pki.Identity, len(hosts))
	for i, h := range hosts {
		ids[i] = pki.Identity{Role: pki.Host, Name: h}
	}
	if _, err := pki.Init(dir, ids...); err != nil {
		t.Fatal(err)
	}
	return func(host string) *TLS {
		id := pki.Identity{Role: pki.Host, Name: host}
		return &TLS{Cert: filepath.Join(dir, pki.CertFile(id)), Key: filepath.Join(dir, pki.KeyFile(id)), CA: filepath.Join(dir, pki.AuthorityFile)}
	}
}

// TestCertificates: a zone of nodes with certificates. One with another's certificate does
// not start; one of another authority, and one with the keys alone, are in no view.
func TestCertificates(t *testing.T) {
	of, others := certificates(t, "n0", "n1"), certificates(t, "n3")
	keys := []Key{{1, [32]byte{1}}}
	nodes := zoneOf(t, 3, func(i int, c *Config) {
		host := c.Name
		if i == 2 { // another process of a host
			c.Name, host = "n1#2", "n1"
		}
		c.TLS, c.Keys = of(host), keys
	})
	agree(t, nodes...)
	settle(t, nodes...)
	if n, err := Join(t.Context(), Config{Name: "n3", TLS: of("n1"), Keys: keys}); !errors.Is(err, ErrConfig) || !errors.Is(err, pki.ErrWrongRole) {
		t.Errorf("with another's certificate: %v, %v", n, err)
	}
	seeds := []string{nodes[0].Addr().String()}
	for _, c := range []Config{{Name: "n3", TLS: others("n3"), Keys: keys}, {Name: "n4", Keys: keys}} {
		c.Bootstrap = seeds
		n := join(t, c)
		await(t, func() bool {
			taken, made := nodes[0].host.Counters(), n.host.Counters()
			return taken.Rejected()+made.Failed > 0
		})
		shut(t, n)
	}
	agree(t, nodes...)
}

// TestPortTakenForDatagrams: a port that is free for connections alone is refused by its
// number.
func TestPortTakenForDatagrams(t *testing.T) {
	for {
		socket, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer socket.Close()
		at := socket.LocalAddr().String()
		_, port, _ := net.SplitHostPort(at)
		n, err := Join(t.Context(), Config{Name: "a", Listen: at})
		if err == nil {
			shut(t, n)
			t.Fatal("two sockets have one port")
		}
		if strings.Contains(err.Error(), "listen tcp") {
			continue // taken for connections as well: another one
		}
		if !strings.Contains(err.Error(), "port "+port+" is free for TCP, but not for UDP") {
			t.Error(err)
		}
		return
	}
}

// TestPlaintextIsAskedFor: a node without keys and certificates serves loopback addresses
// alone, unless it is asked by name to do otherwise.
func TestPlaintextIsAskedFor(t *testing.T) {
	c := Config{Name: "a", Listen: "0.0.0.0:0", Advertise: "127.0.0.1:7946"}
	if n, err := Join(t.Context(), c); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "AllowPlaintext") {
		t.Errorf("%v, %v", n, err)
	}
	c.AllowPlaintext = true
	shut(t, join(t, c))
}
