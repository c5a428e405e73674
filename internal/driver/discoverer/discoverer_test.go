package discoverer_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/discovery"
	"github.com/tributary-fabric/tributary/internal/driver/discoverer"
	"github.com/tributary-fabric/tributary/internal/driver/gnmi/collector"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/topology"
)

var allowed = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// mapped are the maps that a discoverer puts into effect, in order.
type mapped struct {
	*testing.T
	*discoverer.Discoverer
	news chan discoverer.News
}

func discover(t *testing.T, c discoverer.Config) *mapped {
	t.Helper()
	m := &mapped{T: t, news: make(chan discoverer.News)}
	done := make(chan struct{})
	c.Apply = func(n discoverer.News) {
		select {
		case m.news <- n:
		case <-done:
		}
	}
	if c.Limits == (collector.Limits{}) {
		c.Limits = collector.Limits{MinRetry: 1e6, MaxRetry: 1e7}
	}
	d, err := discoverer.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(done)
		d.Close()
	})
	m.Discoverer = d
	return m
}

// until waits for the map to be as wanted, and returns the changes on the way.
func (m *mapped) until(want []string) (changes []discovery.Change) {
	m.Helper()
	for {
		select {
		case n := <-m.news:
			changes = append(changes, n.Changes...)
			s, err := m.State(m.Context())
			if err != nil {
				m.Fatal(err)
			}
			if n.Structural() != (len(n.Nodes) > 0) {
				m.Fatalf("a map with the changes %v", n.Changes)
			}
			if slices.Equal(lines(s.Map), want) {
				return changes
			}
		case <-m.Context().Done():
			m.Fatal("the test has ended")
		}
	}
}

func lines(m discovery.Map) (all []string) {
	for _, n := range m.Nodes {
		all = append(all, "node "+n.Name)
	}
	for _, l := range m.Links {
		all = append(all, fmt.Sprintf("link %v %v", l.Ends, l.Up))
	}
	slices.Sort(all)
	return all
}

// TestFabric: from one seed to the whole fabric, over real gNMI; then every change.
func TestFabric(t *testing.T) {
	f := newFabric(t, parse(t, "leaf-spine:4,2,2"), nil)
	t.Cleanup(f.close)
	m := discover(t, discoverer.Config{Core: discovery.Config{Seeds: []string{f.switches[0].addr.String()}, Allow: allowed}})
	m.until(f.truth())

	s, err := m.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g, down, err := s.Graph("x")
	if err != nil || len(down) != 0 {
		t.Fatalf("%v, %d down", err, len(down))
	}
	for i, x := range f.switches {
		name := f.graph.Name(f.graph.Switch(i))
		n, ok := g.Lookup(name)
		if !ok || !g.Capability(n).CanReduce() || s.Agents()[name] != x.addr.String() {
			t.Errorf("switch %s: %v %+v at %q", name, ok, g.Capability(n), s.Agents()[name])
		}
	}

	var cut [2]topology.End
	for _, l := range f.graph.AllLinks() {
		if f.graph.IsSwitch(l.Ends[0].Node) && f.graph.IsSwitch(l.Ends[1].Node) {
			cut = l.Ends
		}
	}
	f.change(func(links map[[2]topology.End]bool) { links[cut] = false })
	for _, c := range m.until(f.truth()) {
		if c.What.Structural() {
			t.Errorf("a cut cable makes another graph: %v", c)
		}
	}
	f.change(func(links map[[2]topology.End]bool) { links[cut] = true })
	m.until(f.truth())

	// A host is plugged in elsewhere.
	var old [2]topology.End
	for _, l := range f.graph.AllLinks() {
		if f.graph.IsHost(l.Ends[0].Node) {
			old = l.Ends
			break
		}
	}
	moved := old
	moved[1].Port = 99
	f.change(func(links map[[2]topology.End]bool) { delete(links, old); links[moved] = true })
	changes := m.until(f.truth())
	if !slices.ContainsFunc(changes, func(c discovery.Change) bool { return c.What == discovery.LinkMoved }) {
		t.Errorf("no move among %v", changes)
	}
}

// TestRestart: a switch that dies is lost, and met again at the same address; as soon as its
// neighbours hear it, however long the pauses between attempts are.
func TestRestart(t *testing.T) {
	for name, l := range map[string]collector.Limits{"short pauses": {}, "long pauses": {MinRetry: time.Hour, MaxRetry: time.Hour}} {
		t.Run(name, func(t *testing.T) { restart(t, l) })
	}
}

func restart(t *testing.T, l collector.Limits) {
	f := newFabric(t, parse(t, "leaf-spine:2,1,1"), nil)
	t.Cleanup(f.close)
	m := discover(t, discoverer.Config{Core: discovery.Config{Seeds: []string{f.switches[0].addr.String()}, Allow: allowed}, Limits: l})
	m.until(f.truth())
	s := f.switches[1]
	s.stop()
	for away := false; !away; {
		is, err := m.State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		away = slices.Contains(is.Waiting, s.addr.String())
	}
	f.changeWithout(s, func(links map[[2]topology.End]bool) {
		for ends := range links {
			if ends[0].Node == s.node || ends[1].Node == s.node {
				links[ends] = false
			}
		}
	})
	m.until(f.truth())
	listener, err := net.Listen("tcp", s.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	s.start(t, listener, nil)
	f.change(func(links map[[2]topology.End]bool) {
		for ends := range links {
			links[ends] = true
		}
	})
	m.until(f.truth())
}

// TestCertificates: agents have the names of their certificates, and a switch whose
// certificate is of another authority is not in the map as a switch that reduces.
func TestCertificates(t *testing.T) {
	source := func(role pki.Role, name string, secret byte) *pki.Source {
		s, err := pki.Shared(pki.Identity{Role: role, Name: name}, [32]byte{secret})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	g := parse(t, "leaf-spine:2,1,1")
	f := newFabric(t, g, func(name string) *tls.Config { return source(pki.Agent, name, 1).Server() })
	t.Cleanup(f.close)
	m := discover(t, discoverer.Config{Trust: source(pki.Manager, "m", 1), Core: discovery.Config{Seeds: []string{f.switches[0].addr.String()}, Allow: allowed}})
	m.until(f.truth())
	s, err := m.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range s.Nodes {
		if n.Kind == topology.Switch && !n.Certified {
			t.Errorf("%s has no certificate", n.Name)
		}
	}
	other := discover(t, discoverer.Config{Trust: source(pki.Manager, "m", 2), Core: discovery.Config{Seeds: []string{f.switches[0].addr.String()}, Allow: allowed}})
	for {
		s, err := other.State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.Settled {
			if len(s.Nodes) != 0 || len(s.Waiting) != 1 {
				t.Errorf("with certificates of another authority: %+v, waiting for %v", s.Nodes, s.Waiting)
			}
			return
		}
	}
}
