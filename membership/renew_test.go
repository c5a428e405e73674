package membership

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// TestRenewedCertificates: connections that are replaced because certificates were renewed
// end links, and nobody's life.
func TestRenewedCertificates(t *testing.T) {
	t.Parallel()
	a, err := pki.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(host, what string) string { return filepath.Join(dir, host+what) }
	issue := func(host string, until time.Duration) {
		cert, key, err := a.Issue(pki.Identity{Role: pki.Host, Name: host}, time.Now().Add(-time.Minute), time.Now().Add(until))
		if err = errors.Join(err, os.WriteFile(file(host, ".pem"), cert, 0o600), os.WriteFile(file(host, "-key.pem"), key, 0o600),
			os.WriteFile(file(host, "-ca.pem"), a.PEM(), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	nodes := zoneOf(t, 3, func(_ int, c *Config) {
		issue(c.Name, 15*time.Second)
		c.TLS = &TLS{Cert: file(c.Name, ".pem"), Key: file(c.Name, "-key.pem"), CA: file(c.Name, "-ca.pem")}
		c.Keys = []Key{{1, [32]byte{1}}}
	})
	agree(t, nodes...)
	settle(t, nodes...)
	var deaths atomic.Int64
	for _, n := range nodes {
		defer n.Watch(func(string, uint64) {}, func(string, uint64) { deaths.Add(1) })()
		issue(n.Name(), time.Hour)
	}
	await(t, func() bool {
		renewed := uint64(0)
		for _, n := range nodes {
			renewed += n.host.Counters().Renewed
		}
		return renewed >= 3 // each pair has a connection; either end may be first
	})
	agree(t, nodes...)
	settle(t, nodes...)
	if n := deaths.Load(); n != 0 {
		t.Errorf("%d deaths were reported of nodes that live", n)
	}
}
