package netlab

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/topology"
)

func TestConfig(t *testing.T) {
	valid := Config{Prefix: "lab", HostsPerLeaf: 1, Leaves: 1, Spines: 0}
	if err := valid.Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Config){
		"no prefix":     func(c *Config) { c.Prefix = "" },
		"long prefix":   func(c *Config) { c.Prefix = "a-prefix-of-17-ch" },
		"a path":        func(c *Config) { c.Prefix = "../x" },
		"no hosts":      func(c *Config) { c.HostsPerLeaf = 0 },
		"many hosts":    func(c *Config) { c.HostsPerLeaf = MaxHostsPerLeaf + 1 },
		"no leaves":     func(c *Config) { c.Leaves = 0 },
		"apart":         func(c *Config) { c.Leaves = 2 },
		"negative":      func(c *Config) { c.Spines = -1 },
		"negative rate": func(c *Config) { c.Rate = -1 },
		"great rate":    func(c *Config) { c.Rate = MaxRate + 1 },
		"trunk's rate":  func(c *Config) { c.TrunkRate = MaxRate + 1 },
	} {
		c := valid
		change(&c)
		if _, err := newPlan(c); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTrunkRate(t *testing.T) {
	p, err := newPlan(Config{Prefix: "lab", HostsPerLeaf: 2, Leaves: 2, Spines: 2, Rate: 4e8, TrunkRate: 1e8})
	if err != nil {
		t.Fatal(err)
	}
	for l := range topology.LinkID(p.graph.Links()) {
		want := int64(4e8)
		if ends := p.graph.Link(l).Ends; p.graph.IsSwitch(ends[0].Node) && p.graph.IsSwitch(ends[1].Node) {
			want = 1e8
		}
		if got := p.graph.Link(l).Bandwidth; got != want {
			t.Errorf("link %d carries %d bit/s, want %d", l, got, want)
		}
	}
}

func TestParseRate(t *testing.T) {
	for text, want := range map[string]int64{
		"": 0, "unshaped": 0, "200mbit": 200e6, "2.5gbit": 2.5e9, "64kbit": 64e3, "1000bit": 1000, "100gbit": 100e9,
		"200": -1, "200MB": -1, "-1mbit": -1, "1bit": -1, "101gbit": -1, "mbit": -1,
	} {
		got, err := ParseRate(text)
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
		if err != nil && !errors.Is(err, ErrConfig) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestBucket(t *testing.T) {
	if burst, limit := bucket(200e6); burst != 64<<10 || limit != 1_250_000+64<<10 {
		t.Errorf("at 200 Mbit/s %d and %d bytes", burst, limit)
	}
	if burst, _ := bucket(10e9); burst != 625_000 {
		t.Errorf("at 10 Gbit/s %d bytes", burst)
	}
}

// TestRoutes walks, with some trunks down, from every node to every host over
// each of the equal ways: none has a loop or an end on the way, and no address
// of a trunk is reached but over that trunk.
func TestRoutes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := Config{
			Prefix: "p", HostsPerLeaf: rapid.IntRange(1, 3).Draw(rt, "hosts"),
			Leaves: rapid.IntRange(1, 4).Draw(rt, "leaves"), Spines: rapid.IntRange(1, 3).Draw(rt, "spines"),
		}
		p, err := newPlan(c)
		if err != nil {
			rt.Fatal(err)
		}
		down := map[topology.LinkID]bool{}
		for l := p.graph.Hosts(); l < p.graph.Links(); l++ {
			down[topology.LinkID(l)] = rapid.IntRange(0, 4).Draw(rt, "down") == 0
		}
		w := walk{p, func(l topology.LinkID) bool { return !down[l] }}
		for h := range topology.NodeID(p.graph.Hosts()) {
			leaf := int(h) / c.HostsPerLeaf
			for n := range topology.NodeID(p.graph.Nodes()) {
				if w.joined(n, leaf) {
					w.check(rt, n, p.graph.AddressAt(p.hostLink(h), h), h)
					w.check(rt, n, p.loops[h], h)
				}
			}
		}
	})
}

// TestRailRoutes: hosts reach each other's rails by their own rails of the same number, and
// those that are down are left out.
func TestRailRoutes(t *testing.T) {
	for _, c := range []Config{
		{HostsPerLeaf: 3, Leaves: 2, HostRails: 2}, {HostsPerLeaf: 2, Leaves: 6, Spines: 2, HostRails: 3},
	} {
		c.Prefix = "p"
		p, err := newPlan(c)
		if err != nil {
			t.Fatal(err)
		}
		if want := c.HostsPerLeaf * c.Leaves / c.HostRails; p.graph.Hosts() != want {
			t.Fatalf("%d hosts, want %d", p.graph.Hosts(), want)
		}
		w := walk{p, func(topology.LinkID) bool { return true }}
		for h := range topology.NodeID(p.graph.Hosts()) {
			for o := range topology.NodeID(p.graph.Hosts()) {
				for r := range c.HostRails {
					to := p.graph.AddressAt(p.rail(o, r), o)
					if via := p.leafOf(int(o), r); p.graph.Across(p.rail(o, r), o) != p.leaf(via) {
						t.Errorf("rail %d of host %d is not on leaf %d", r, o, via)
					}
					if h == o {
						continue
					}
					w.check(t, h, to, o)
					best := route{}
					for _, x := range p.routes(h, w.up) {
						if x.to.Contains(to) && (!best.to.IsValid() || x.to.Bits() > best.to.Bits()) {
							best = x
						}
					}
					if !slices.Equal(best.via, []topology.LinkID{p.rail(h, r)}) {
						t.Errorf("host %d reaches %v over %v", h, to, best.via)
					}
				}
			}
		}
	}
	for _, c := range []Config{{HostRails: 3}, {HostRails: -1}, {HostRails: 9, Leaves: 9}, {HostRails: 2, Leaves: 4}} {
		c.Prefix, c.HostsPerLeaf, c.Leaves = "p", 1, max(c.Leaves, 2)
		if err := c.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

type walk struct {
	*plan
	up func(topology.LinkID) bool
}

// joined reports whether there is a way of the shortest kind from n to a leaf.
func (w walk) joined(n topology.NodeID, leaf int) bool {
	if w.graph.IsHost(n) {
		n = w.leaf(int(n) / w.cfg.HostsPerLeaf)
	}
	i := w.graph.SwitchIndex(n)
	if !w.isLeaf(n) {
		return w.up(w.trunk(leaf, i-w.cfg.Leaves))
	}
	if i == leaf {
		return true
	}
	for s := range w.cfg.Spines {
		if w.up(w.trunk(i, s)) && w.up(w.trunk(leaf, s)) {
			return true
		}
	}
	return false
}

// check follows all ways from n to an address of host h.
func (w walk) check(t interface{ Fatalf(string, ...any) }, n topology.NodeID, to netip.Addr, h topology.NodeID) {
	at := []topology.NodeID{n}
	for range 5 {
		var next []topology.NodeID
		for _, n := range at {
			if n == h {
				continue
			}
			hops := w.hops(n, to)
			if len(hops) == 0 {
				t.Fatalf("%s has no way to %v of %s", w.graph.Name(n), to, w.graph.Name(h))
			}
			next = append(next, hops...)
		}
		at = next
	}
	if len(at) > 0 {
		t.Fatalf("a way from %s to %v of %s has no end", w.graph.Name(n), to, w.graph.Name(h))
	}
}

// hops returns the next nodes on the way from n: those on a common link, or
// those of the longest prefix.
func (w walk) hops(n topology.NodeID, to netip.Addr) (all []topology.NodeID) {
	for _, l := range w.graph.Adjacent(n) {
		if w.graph.AddressAt(l, w.graph.Across(l, n)) == to && w.up(l) {
			return []topology.NodeID{w.graph.Across(l, n)}
		}
	}
	best := route{}
	for _, r := range w.routes(n, w.up) {
		if r.to.Contains(to) && (!best.to.IsValid() || r.to.Bits() > best.to.Bits()) {
			best = r
		}
	}
	for _, l := range best.via {
		all = append(all, w.graph.Across(l, n))
	}
	return all
}
