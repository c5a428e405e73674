package membership

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// renewals are nodes whose certificates are renewed again and again, as short ones are.
type renewals struct {
	*testing.T
	authority *pki.Authority
	dir       string
}

func (r *renewals) file(host, what string) string { return filepath.Join(r.dir, host+what) }

// life is of each certificate. Connections are replaced in its last quarter.
const life = 15 * time.Second

// issue writes a certificate and its key.
func (r *renewals) issue(host string) {
	cert, key, err := r.authority.Issue(pki.Identity{Role: pki.Host, Name: host}, time.Now().Add(-time.Minute), time.Now().Add(life))
	if err = errors.Join(err, os.WriteFile(r.file(host, ".pem"), cert, 0o600), os.WriteFile(r.file(host, "-key.pem"), key, 0o600)); err != nil {
		r.Error(err)
	}
}

// begin issues for a host from now on, until the test ends.
func (r *renewals) begin(host string) *TLS {
	r.issue(host)
	if err := os.WriteFile(r.file(host, "-ca.pem"), r.authority.PEM(), 0o600); err != nil {
		r.Fatal(err)
	}
	tick, end := time.NewTicker(life/5), make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		for {
			select {
			case <-tick.C:
				r.issue(host)
			case <-end:
				return
			}
		}
	})
	r.Cleanup(func() {
		tick.Stop()
		close(end)
		done.Wait()
	})
	return &TLS{Cert: r.file(host, ".pem"), Key: r.file(host, "-key.pem"), CA: r.file(host, "-ca.pem")}
}

// TestRenewedCertificates: connections that are replaced because certificates were renewed
// end links, and nobody's life. Whenever a connection began, its certificate is renewed: so
// nothing depends on how fast the nodes find each other.
func TestRenewedCertificates(t *testing.T) {
	t.Parallel()
	a, err := pki.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	r := &renewals{t, a, t.TempDir()}
	nodes := zoneOf(t, 3, func(_ int, c *Config) {
		c.TLS, c.Keys = r.begin(c.Name), []Key{{1, [32]byte{1}}}
	})
	agree(t, nodes...)
	settle(t, nodes...)
	var deaths atomic.Int64
	for _, n := range nodes {
		defer n.Watch(func(string, uint64) {}, func(string, uint64) { deaths.Add(1) })()
	}
	await(t, func() bool {
		renewed := uint64(0)
		for _, n := range nodes {
			renewed += n.host.Counters().Renewed
		}
		return renewed >= 3 // as many as there are pairs
	})
	agree(t, nodes...)
	settle(t, nodes...)
	if n := deaths.Load(); n != 0 {
		t.Errorf("%d deaths were reported of nodes that live", n)
	}
}
