package portmap_test

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/driver/dataplane/portmap"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/p4"
)

func addr(a, b byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, a, b}) }
func mac(n byte) p4.MAC         { return p4.MAC{2, 0, 0, 0, 0, n} }

func ethernet(name string, m byte, addresses ...netip.Addr) nic.Interface {
	h := mac(m)
	return nic.Interface{Name: name, Up: true, MAC: net.HardwareAddr(h[:]), Addresses: addresses}
}

func known(hops ...netip.Addr) func(string, netip.Addr) (p4.MAC, bool) {
	return func(_ string, next netip.Addr) (p4.MAC, bool) {
		for n, h := range hops {
			if h == next {
				return mac(0x80 + byte(n)), true
			}
		}
		return p4.MAC{}, false
	}
}

// TestSources: the file wins over the interface, and this over the manager.
func TestSources(t *testing.T) {
	n := portmap.Of(portmap.Known{
		Specs: []portmap.Spec{
			{Interface: "leaf-0-eth*"}, {Interface: "leaf-0-eth2", Number: 20, MAC: mac(99)},
			{Number: 5, Addr: addr(5, 0), MAC: mac(55)}, {Interface: "uplink", Addr: addr(9, 9), Number: 9}, {Interface: "gone"},
		},
		Routes: []p4.Route{{Prefix: netip.PrefixFrom(addr(1, 1), 32), Port: 5, MAC: mac(77)}, {Prefix: netip.PrefixFrom(addr(8, 8), 32), Port: 8}},
		Interfaces: []nic.Interface{
			ethernet("ctl", 100), ethernet("leaf-0-eth1", 1), ethernet("leaf-0-eth2", 2, netip.MustParseAddr("fe80::1"), addr(2, 0)),
			ethernet("leaf-0-eth3", 3), ethernet("leaf-0-ethx", 4), ethernet("uplink", 9),
		},
		Assigned: portmap.Assignment{
			Addresses: map[uint16]netip.Addr{1: addr(1, 0), 20: addr(2, 2), 9: addr(9, 0)},
			Routes: []portmap.Route{
				{Prefix: netip.PrefixFrom(addr(1, 1), 32), Port: 1, Next: addr(1, 1)}, // by hand otherwise
				{Prefix: netip.PrefixFrom(addr(2, 1), 32), Port: 20, Next: addr(2, 1)},
				{Prefix: netip.PrefixFrom(addr(7, 1), 32), Port: 20, Next: addr(2, 1)},
				{Prefix: netip.PrefixFrom(addr(6, 1), 32), Port: 1, Next: addr(1, 7)},  // does not answer
				{Prefix: netip.PrefixFrom(addr(6, 2), 32), Port: 3, Next: addr(1, 7)},  // no address there
				{Prefix: netip.PrefixFrom(addr(1, 0), 32), Port: 20, Next: addr(2, 1)}, // its own address
			},
		},
		MAC: known(addr(1, 1), addr(2, 1)),
	})
	port := func(name string, number uint16, a netip.Addr, m byte) portmap.Port {
		return portmap.Port{Interface: name, Port: p4.Port{Number: number, Addr: a, MAC: mac(m)}}
	}
	ports := []portmap.Port{
		port("leaf-0-eth1", 1, addr(1, 0), 1), port("leaf-0-eth3", 3, netip.Addr{}, 3), port("", 5, addr(5, 0), 55),
		port("uplink", 9, addr(9, 9), 9), port("leaf-0-eth2", 20, addr(2, 0), 99),
	}
	routes := []p4.Route{
		{Prefix: netip.PrefixFrom(addr(1, 1), 32), Port: 5, MAC: mac(77)},
		{Prefix: netip.PrefixFrom(addr(2, 1), 32), Port: 20, MAC: mac(0x81)},
		{Prefix: netip.PrefixFrom(addr(7, 1), 32), Port: 20, MAC: mac(0x81)},
	}
	hops := []portmap.Hop{{Port: ports[4], Addr: addr(2, 1), Known: true}, {Port: ports[0], Addr: addr(1, 7)}}
	compare := cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})
	for _, x := range []struct{ want, got any }{{ports, n.Ports}, {routes, n.Routes}, {hops, n.Hops}} {
		if diff := cmp.Diff(x.want, x.got, compare); diff != "" {
			t.Error(diff)
		}
	}
	if text := strings.Join(n.Problems, "; "); text != "there is no interface gone; the route to 10.0.8.8/32 is left out: its port 8 has no address" {
		t.Error(text)
	}
	seen := n.Seen([]nic.Interface{ethernet("ctl", 100), ethernet("leaf-0-eth2", 2), ethernet("leaf-0-eth3", 3)})
	if len(seen) != 1 || seen[0].Name != "leaf-0-eth2" || !seen[0].Has(addr(2, 0)) || !seen[0].Up {
		t.Errorf("managers see %+v", seen)
	}
}

// TestAlwaysValid: whatever settings, interfaces and the manager say, the target can
// take what comes of it.
func TestAlwaysValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var k portmap.Known
		address := rapid.Custom(func(t *rapid.T) netip.Addr {
			switch rapid.IntRange(0, 8).Draw(t, "kind") {
			case 0:
				return netip.Addr{}
			case 1:
				return netip.MustParseAddr("fd00::1")
			}
			return addr(0, rapid.ByteRange(0, 5).Draw(t, "addr"))
		})
		number := rapid.SampledFrom([]uint16{0, 1, 2, 3, p4.Ports, p4.Ports + 1})
		for range rapid.IntRange(0, 4).Draw(t, "specs") {
			s := portmap.Spec{
				Interface: rapid.SampledFrom([]string{"", "e*", "e1", "e2", "*"}).Draw(t, "interface"),
				Number:    number.Draw(t, "number"), MAC: mac(rapid.ByteRange(0, 1).Draw(t, "mac")),
			}
			if a := address.Draw(t, "by hand"); a.Is4() {
				s.Addr = a
			}
			if s.Check() == nil {
				k.Specs = append(k.Specs, s)
			}
		}
		for i := range rapid.IntRange(0, 4).Draw(t, "interfaces") {
			k.Interfaces = append(k.Interfaces, ethernet(fmt.Sprintf("e%d", rapid.SampledFrom([]int{i, i + 600}).Draw(t, "name")), byte(i), address.Draw(t, "own")))
		}
		k.Assigned.Addresses = map[uint16]netip.Addr{}
		for p := range uint16(4) {
			k.Assigned.Addresses[p] = address.Draw(t, "assigned")
		}
		for i := range rapid.IntRange(0, 6).Draw(t, "routes") {
			bits := rapid.SampledFrom([]int{0, 24, 31, 32}).Draw(t, "bits")
			if p, err := address.Draw(t, "prefix").Prefix(bits); err == nil {
				k.Assigned.Routes = append(k.Assigned.Routes, portmap.Route{Prefix: p, Port: number.Draw(t, "port"), Next: addr(0, byte(i))})
			}
			if p, err := addr(0, rapid.ByteRange(0, 5).Draw(t, "hand")).Prefix(bits); err == nil {
				k.Routes = append(k.Routes, p4.Route{Prefix: p, Port: number.Draw(t, "port by hand")})
			}
		}
		k.MAC = known(addr(0, 0), addr(0, 1), addr(0, 2))
		n := portmap.Of(k)
		state := p4.State{Ports: n.Addressed(), Routes: n.Routes}
		if err := state.Validate(); err != nil {
			t.Fatalf("%v: %+v", err, n)
		}
	})
}

// TestRoom leaves out what the program has no room for, and says so.
func TestRoom(t *testing.T) {
	k := portmap.Known{Specs: []portmap.Spec{{Number: 1, Addr: addr(0, 0), MAC: mac(1)}}, MAC: known(addr(0, 1))}
	for i := range p4.Routes + 5 {
		a := netip.AddrFrom4([4]byte{11, 0, byte(i >> 8), byte(i)})
		k.Assigned.Routes = append(k.Assigned.Routes, portmap.Route{Prefix: netip.PrefixFrom(a, 32), Port: 1, Next: addr(0, 1)})
	}
	n := portmap.Of(k)
	if len(n.Routes) != p4.Routes-1 || len(n.Problems) != 1 || !strings.Contains(n.Problems[0], "6 routes are left out") {
		t.Errorf("%d routes, %v", len(n.Routes), n.Problems)
	}
}
