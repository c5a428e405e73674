package discoverer

import (
	"crypto/tls"
	"net/netip"
	"testing"
	"testing/synctest"

	"github.com/tributary-fabric/tributary/internal/core/discovery"
	"github.com/tributary-fabric/tributary/internal/driver/gnmi/collector"
)

// TestOneReportWaits: while the loop is busy, no target has a second report made.
func TestOneReportWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := Start(Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		free := make(chan struct{})
		go func() { _ = d.loop.Do(t.Context(), func() { <-free }) }()
		synctest.Wait()
		made := 0
		go func() {
			for ; made < 3; made++ {
				d.report(t.Context(), "10.0.0.1:74", &discovery.Facts{})
			}
		}()
		synctest.Wait()
		if made != 0 {
			t.Errorf("%d reports were made before the first was taken", made)
		}
		close(free)
		synctest.Wait()
		if made != 3 {
			t.Errorf("%d reports were made", made)
		}
	})
}

// TestLimitsAreTheCores: a collector reads what the core takes, and some more, so that the core
// can report that there is more.
func TestLimitsAreTheCores(t *testing.T) {
	l := (&Config{Core: discovery.Config{MaxPorts: 7, MaxNeighbors: 3}}).target("10.0.0.1:74").Limits
	if l.Ports != 7+collector.Spare || l.Neighbors != 3+collector.Spare {
		t.Errorf("%+v", l)
	}
}

// TestNamesHaveTheirTargetsPassword: a seed that is given by its name is reached as the address
// is that it resolves to, and is authenticated by the name.
func TestNamesHaveTheirTargetsPassword(t *testing.T) {
	local := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	c := Config{Others: []Other{{Addresses: local, Username: "admin", Password: "secret", TLS: &tls.Config{MinVersion: tls.VersionTLS13}}}}
	to := c.target("localhost:74")
	if err := to.Prepare(t.Context(), &to); err != nil {
		t.Fatal(err)
	}
	at, err := netip.ParseAddrPort(to.Address)
	if err != nil || !at.Addr().IsLoopback() || to.Username != "admin" || to.Password != "secret" || to.TLS.ServerName != "localhost" {
		t.Errorf("%q as %q, %v", to.Address, to.Username, err)
	}
	c.Others[0].Addresses = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	to = c.target("localhost:74")
	if err := to.Prepare(t.Context(), &to); err != nil || to.Address != "localhost:74" || to.Password != "" {
		t.Errorf("%q has a password that is another's, %v", to.Address, err)
	}
}
