package discovery

import (
	"net/netip"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/topology"
)

// TestAddresses: a link has the addresses of its ends in one subnet, or, where an end
// has no subnet, those that are the only ones.
func TestAddresses(t *testing.T) {
	at := func(addresses ...string) *port {
		p := &port{node: &node{target: &target{}}}
		for _, a := range addresses {
			p.facts.Addresses = append(p.facts.Addresses, netip.MustParsePrefix(a))
		}
		return p
	}
	for _, test := range []struct {
		name string
		a, b *port
		x, y string // of a and b; empty: there are none
	}{
		{"one subnet", at("10.0.0.0/31"), at("10.0.0.1/31"), "10.0.0.0", "10.0.0.1"},
		{"the smallest", at("10.0.0.2/8", "10.1.0.0/31"), at("10.0.0.3/8", "10.1.0.1/31"), "10.1.0.0", "10.1.0.1"},
		{"other subnets", at("10.0.0.0/31"), at("10.0.0.2/31"), "", ""},
		{"none", at(), at("10.0.0.1/32"), "", ""},
		{"ports of P4 targets", at("10.0.0.0/32"), at("10.0.0.1/32"), "10.0.0.0", "10.0.0.1"},
		{"a port of a P4 target, and a system's", at("10.0.0.0/32"), at("10.0.0.1/31"), "10.0.0.0", "10.0.0.1"},
		{"of two families", at("10.0.0.0/32"), at("fd00::1/128"), "", ""},
		{"of several", at("10.0.0.0/32"), at("10.0.0.1/32", "10.0.0.2/32"), "", ""},
		{"the same", at("10.0.0.0/32"), at("10.0.0.0/32"), "", ""},
		{"by family", at("10.0.0.0/32", "fd00::/64"), at("10.0.1.1/32", "fd00::1/64"), "fd00::", "fd00::1"},
	} {
		check := func(pair [2]netip.Addr, x, y string) {
			t.Helper()
			want := [2]netip.Addr{}
			if x != "" {
				want = [2]netip.Addr{netip.MustParseAddr(x), netip.MustParseAddr(y)}
			}
			if pair != want {
				t.Errorf("%s: %v, want %v", test.name, pair, want)
			}
		}
		check(addressesOf(test.a, test.b), test.x, test.y)
		check(addressesOf(test.b, test.a), test.y, test.x)
	}
}

// TestSlowerEnd: a link is as fast as its slower end, and has the smaller latency, also
// where an end says just what a link has of which nothing is said.
func TestSlowerEnd(t *testing.T) {
	const us = time.Microsecond
	for _, test := range []struct {
		a, b Port
		want topology.LinkSpec
	}{
		{Port{Speed: 100e9, Latency: us}, Port{Speed: 400e9, Latency: 2 * us}, topology.LinkSpec{Bandwidth: 100e9, Latency: us}},
		{Port{Speed: 25e9, Latency: topology.DefaultLatency}, Port{Speed: 100e9, Latency: us}, topology.LinkSpec{Bandwidth: 25e9, Latency: topology.DefaultLatency}},
		{Port{Speed: 400e9}, Port{Latency: 2 * us}, topology.LinkSpec{Bandwidth: 400e9, Latency: 2 * us}},
		{Port{}, Port{}, topology.DefaultLink()},
	} {
		a, b := &port{node: &node{target: &target{}}, facts: test.a}, &port{node: &node{target: &target{}}, facts: test.b}
		for _, ends := range [][2]*port{{a, b}, {b, a}} {
			link := Link{LinkSpec: topology.DefaultLink()}
			link.wire(ends[0], ends[1])
			if link.LinkSpec != test.want {
				t.Errorf("%+v and %+v: %+v", ends[0].facts, ends[1].facts, link.LinkSpec)
			}
		}
	}
}
