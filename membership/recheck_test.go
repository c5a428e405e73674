package membership

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// authority issues certificates of hosts that change, and revokes them.
type authority struct {
	*pki.Authority
	t   *testing.T
	dir string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a, err := pki.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &authority{a, t, t.TempDir()}
}

// write replaces a file in one step.
func (a *authority) write(name string, text []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := errors.Join(os.WriteFile(path+".new", text, 0o600), os.Rename(path+".new", path)); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// issue writes a new certificate of a host, and returns it.
func (a *authority) issue(host string) *x509.Certificate {
	return a.issueFrom(host, time.Now().Add(-time.Minute))
}

func (a *authority) issueFrom(host string, from time.Time) *x509.Certificate {
	a.t.Helper()
	cert, key, err := a.Issue(pki.Identity{Role: pki.Host, Name: host}, from, time.Now().Add(time.Hour))
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(host+"-key.pem", key)
	a.write(host+".pem", cert)
	block, _ := pem.Decode(cert)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		a.t.Fatal(err)
	}
	return c
}

// revoke writes the list that a host has of revoked certificates.
func (a *authority) revoke(host string, all ...*x509.Certificate) {
	a.t.Helper()
	var entries []x509.RevocationListEntry
	for _, c := range all {
		entries = append(entries, x509.RevocationListEntry{SerialNumber: c.SerialNumber, RevocationTime: time.Now()})
	}
	list, err := a.List(1, time.Now(), time.Now().Add(time.Hour), entries)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(host+"-revoked.pem", list)
}

func (a *authority) of(host string) *TLS {
	file := func(what string) string { return filepath.Join(a.dir, host+what) }
	return &TLS{Cert: file(".pem"), Key: file("-key.pem"), CA: a.write("ca.pem", a.PEM()), Revoked: file("-revoked.pem")}
}

// births returns the certificates by which births that a node knows are signed, by node.
func births(t *testing.T, n *Node) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	err := n.ask(within(t), func(s *stepper) {
		for _, record := range s.members().Records() {
			var o gossip.Origin
			if err := o.Decode(record); err != nil {
				t.Error(err)
			}
			all[gossip.ID(o.ID).Name()] = o.Certificates[0]
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRevokedAfterRenewal: a node whose certificate was renewed stays in the zone, and is in
// the views of newcomers, when the former certificate is revoked.
func TestRevokedAfterRenewal(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	first := map[string]*x509.Certificate{}
	proven := func(_ int, c *Config) {
		first[c.Name] = a.issue(c.Name)
		a.revoke(c.Name)
		c.TLS, c.Keys = a.of(c.Name), []Key{{1, [32]byte{1}}}
	}
	nodes := zoneOf(t, 3, proven)
	agree(t, nodes...)
	settle(t, nodes...)
	var deaths atomic.Int64
	for _, n := range nodes {
		defer n.Watch(func(string, uint64) {}, func(string, uint64) { deaths.Add(1) })()
	}
	second := a.issue("n1")
	for _, n := range nodes {
		await(t, func() bool { return bytes.Equal(births(t, n)["n1"], second.Raw) })
	}
	for _, n := range nodes {
		before := n.source.Edition()
		a.revoke(n.Name(), first["n1"])
		await(t, func() bool { return n.source.Edition() > before })
		n.checkBirths()
	}
	c := Config{Name: "n3", Bootstrap: []string{nodes[0].Addr().String()}}
	proven(3, &c)
	a.revoke("n3", first["n1"])
	agree(t, append(slices.Clone(nodes), join(t, c))...)
	if n := deaths.Load(); n != 0 {
		t.Errorf("%d deaths were reported of nodes that live", n)
	}
}

// TestRevokedNodesLeave: a node whose certificate was revoked, and not renewed, leaves the
// views of those who know that, though it still has the zone's keys; and comes back with another
// certificate.
func TestRevokedNodesLeave(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	first := map[string]*x509.Certificate{}
	nodes := zoneOf(t, 3, func(_ int, c *Config) {
		first[c.Name] = a.issue(c.Name)
		a.revoke(c.Name)
		c.TLS, c.Keys = a.of(c.Name), []Key{{1, [32]byte{1}}}
	})
	agree(t, nodes...)
	settle(t, nodes...)
	watchers := []*Watcher{follow(t, nodes[0]), follow(t, nodes[2])}
	a.revoke("n0", first["n1"])
	a.revoke("n2", first["n1"])
	for _, w := range watchers {
		if x := waitFor(t, w, Left, "n1"); x.Cause != Failed {
			t.Errorf("it is revoked, and %v", x)
		}
	}
	agree(t, nodes[0], nodes[2])
	a.issue("n1")
	for _, w := range watchers {
		waitFor(t, w, Joined, "n1")
	}
	agree(t, nodes...)
}

// TestStateAheadOfTheClock: a node that others would not take does not start.
func TestStateAheadOfTheClock(t *testing.T) {
	a := newAuthority(t)
	a.issue("n1")
	a.revoke("n1")
	c := Config{Name: "n1", TLS: a.of("n1"), Keys: []Key{{1, [32]byte{1}}}, State: a.write("state", []byte("4611686018427387904\n"))}
	if n, err := Join(t.Context(), c); !errors.Is(err, ErrState) || !errors.Is(err, peering.ErrAhead) {
		t.Errorf("%v, %v", n, err)
	}
}
