package openconfig_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

var (
	words = rapid.StringOfN(rapid.RuneFrom([]rune(`ab/[]=\ é:`)), 0, 4, -1)
	some  = rapid.StringOfN(rapid.RuneFrom([]rune(`ab/[]=\ é`)), 1, 4, -1)
	flags = rapid.Bool()
)

func count(t *rapid.T) openconfig.Count {
	if !flags.Draw(t, "counted") {
		return openconfig.Count{}
	}
	return openconfig.Counted(rapid.Uint64().Draw(t, "count"))
}

func number[N uint8 | uint16 | uint32 | uint64](t *rapid.T) N {
	return N(rapid.Uint64().Draw(t, "number"))
}

func word(t *rapid.T) string { return words.Draw(t, "word") }

var addresses = rapid.Custom(func(t *rapid.T) netip.Addr {
	if flags.Draw(t, "4") {
		return netip.AddrFrom4([4]byte{10, 0, 0, number[uint8](t)})
	}
	return netip.AddrFrom16([16]byte{0x20, 1, 15: number[uint8](t)})
})

var neighbors = rapid.Custom(func(t *rapid.T) openconfig.Neighbor {
	n := openconfig.Neighbor{
		ID: word(t), Chassis: word(t), ChassisType: word(t), Port: word(t), PortType: word(t), PortDescription: word(t),
		SystemName: word(t), SystemDescription: word(t), TTL: number[uint16](t),
		Management: rapid.SliceOfNDistinct(addresses, 0, 2, rapid.ID).Draw(t, "management"),
		Tributary:  openconfig.Tributary{Role: word(t), Name: word(t), AgentPort: number[uint16](t), Port: number[uint32](t)},
	}
	for _, name := range rapid.SliceOfNDistinct(some, 0, 2, rapid.ID).Draw(t, "capabilities") {
		n.Capabilities = append(n.Capabilities, openconfig.Capability{Name: name, Enabled: flags.Draw(t, "enabled")})
	}
	return n
})

var interfaces = rapid.Custom(func(t *rapid.T) *openconfig.Interface {
	i := &openconfig.Interface{
		Type: word(t), Index: number[uint32](t), Port: number[uint32](t), Admin: openconfig.Status(word(t)),
		Oper: openconfig.StatusOf(flags.Draw(t, "up")), LastChange: number[uint64](t), MTU: number[uint16](t), MAC: word(t),
		Speed: rapid.OneOf(rapid.SampledFrom([]uint64{0, 10e9, 2500e6}), rapid.Uint64()).Draw(t, "speed"), Latency: number[uint64](t),
		Counters: openconfig.Counters{InBytes: count(t), OutErrors: count(t), OutDiscards: count(t)},
		LLDP:     flags.Draw(t, "lldp"),
	}
	i.Type = strings.ReplaceAll(i.Type, ":", "")
	i.Neighbors = rapid.SliceOfNDistinct(neighbors, 0, 2, func(n openconfig.Neighbor) string { return n.ID }).Draw(t, "neighbors")
	for _, family := range []bool{true, false} { // in the order of Leaves
		for _, a := range rapid.SliceOfNDistinct(addresses, 0, 2, rapid.ID).Draw(t, "addresses") {
			if a.Is4() == family {
				bits := rapid.IntRange(0, a.BitLen()).Draw(t, "bits")
				i.Addresses = append(i.Addresses, openconfig.Address{Prefix: netip.PrefixFrom(a, bits), Subinterface: number[uint32](t)})
			}
		}
	}
	return i
})

var devices = rapid.Custom(func(t *rapid.T) *openconfig.Device {
	d := &openconfig.Device{
		Name: word(t), BootTime: number[uint64](t), Software: word(t), CPU: count(t), MemoryUsed: number[uint64](t),
		LLDP: flags.Draw(t, "lldp"), Chassis: word(t), ChassisType: word(t), SystemName: word(t),
	}
	d.CPU.N &= 127
	for _, pid := range rapid.SliceOfNDistinct(rapid.Uint64(), 0, 2, rapid.ID).Draw(t, "processes") {
		if d.Processes == nil {
			d.Processes = map[uint64]*openconfig.Process{}
		}
		d.Processes[pid] = &openconfig.Process{Name: word(t), Start: number[uint64](t), User: count(t), Memory: count(t)}
	}
	for _, name := range rapid.SliceOfNDistinct(words, 0, 2, rapid.ID).Draw(t, "names") {
		if d.Interfaces == nil {
			d.Interfaces = map[string]*openconfig.Interface{}
		}
		i := interfaces.Draw(t, "interface")
		i.Name = name
		d.Interfaces[name] = i
	}
	if flags.Draw(t, "agent") {
		d.Agent = &openconfig.Agent{
			Switch: some.Draw(t, "switch"), Incarnation: number[uint64](t), Draining: flags.Draw(t, "draining"), Unusable: word(t),
			Functions: rapid.SliceOfN(words, 0, 2).Draw(t, "functions"), Slots: number[uint32](t), PacketsIn: number[uint64](t),
			Drops:  rapid.MapOfN(words, rapid.Uint64(), 0, 2).Draw(t, "drops"),
			Events: rapid.MapOfN(words, rapid.Uint64(), 0, 2).Draw(t, "events"),
		}
		for _, group := range rapid.SliceOfNDistinct(rapid.Uint32(), 0, 2, rapid.ID).Draw(t, "trees") {
			if d.Agent.Trees == nil {
				d.Agent.Trees = map[uint32]*openconfig.Tree{}
			}
			d.Agent.Trees[group] = &openconfig.Tree{BytesOut: number[uint64](t), Dropped: number[uint64](t)}
		}
	}
	return d
})

var same = cmp.Options{cmpopts.EquateComparable(netip.Addr{}, openconfig.Address{}), cmpopts.EquateEmpty()}

// TestRoundTrip: what a device reports makes it again, in any order of its leaves of
// different lists, and removed leaf by leaf nothing is left.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := devices.Draw(t, "device")
		var got openconfig.Device
		var at []string
		for path, v := range d.Leaves() {
			at = append(at, path)
			if known, err := set(&got, path, v); err != nil || !known {
				t.Fatalf("%s = %v: %v, %v", path, v, known, err)
			}
		}
		if diff := cmp.Diff(d, &got, same); diff != "" {
			t.Fatal(diff)
		}
		if unique := slices.Compact(slices.Sorted(slices.Values(at))); len(unique) != len(at) {
			t.Fatalf("%d of %d paths are unique", len(unique), len(at))
		}
		for _, path := range rapid.Permutation(at).Draw(t, "order") {
			if _, err := set(&got, path, openconfig.Value{}); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(openconfig.Device{}, got); diff != "" {
			t.Fatalf("is left: %s", diff)
		}
	})
}

// TestDelete: what is deleted is what Covers selects.
func TestDelete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := devices.Draw(t, "device")
		before := map[string]openconfig.Value{}
		var at []string
		for path, v := range d.Leaves() {
			before[path] = v
			at = append(at, path)
		}
		if len(at) == 0 {
			return
		}
		p, err := openconfig.ParsePath(rapid.SampledFrom(at).Draw(t, "path"))
		if err != nil {
			t.Fatal(err)
		}
		p = p[:rapid.IntRange(1, len(p)-1).Draw(t, "depth")]
		for i := range p {
			if flags.Draw(t, "any") {
				p[i].Keys = nil
			}
			for k := range p[i].Keys {
				if flags.Draw(t, "star") {
					p[i].Keys[k].Value = openconfig.AnyElem
				}
			}
		}
		d.Delete(p)
		after := map[string]openconfig.Value{}
		for path, v := range d.Leaves() {
			after[path] = v
		}
		for path, v := range before {
			q, err := openconfig.ParsePath(path)
			if err != nil {
				t.Fatal(err)
			}
			switch left, there := after[path]; {
			case p.Covers(q) && there && !stays(path):
				t.Fatalf("%s left %s", p, path)
			case !p.Covers(q) && left != v && !goesWith(path):
				t.Fatalf("%s removed %s", p, path)
			}
		}
	})
}

// stays reports whether a leaf is there as long as anything else is: keys of several
// lists, and what an agent always reports.
func stays(path string) bool {
	return strings.HasPrefix(path, "/tributary/state") || strings.HasPrefix(path, "/tributary/c") || strings.HasSuffix(path, "/state/name") || strings.HasSuffix(path, "/state/id")
}

// goesWith reports whether a leaf is there only as long as another is, which is not
// above it.
func goesWith(path string) bool {
	return stays(path) || strings.HasPrefix(path, "/tributary/") || strings.Contains(path, "/capability[") ||
		strings.HasSuffix(path, "/state/index") || strings.Contains(path, "/process[")
}

// set sets a leaf at a path string.
func set(d *openconfig.Device, path string, v openconfig.Value) (known bool, err error) {
	p, err := openconfig.ParsePath(path)
	if err != nil {
		return false, err
	}
	return d.Set(p, v)
}

func TestSetRefuses(t *testing.T) {
	const eth0 = "/interfaces/interface[name=eth0]"
	for _, test := range []struct {
		path  string
		value openconfig.Value
		known bool
		err   error
	}{
		{"/bgp/neighbor", openconfig.Number(1), false, nil},
		{eth0 + "/state", openconfig.Number(1), false, nil},
		{"/interfaces/interface[index=1]/state/mtu", openconfig.Number(1), false, nil},
		{"/interfaces/interface/state/mtu", openconfig.Number(1), false, nil},
		{"interfaces", openconfig.Number(1), false, openconfig.ErrPath},
		{eth0 + "/state/mtu", openconfig.Text("large"), true, openconfig.ErrValue},
		{eth0 + "/state/mtu", openconfig.Number(65536), true, openconfig.ErrValue},
		{eth0 + "/state/mtu", openconfig.Of(true), true, openconfig.ErrValue},
		{eth0 + "/state/name", openconfig.Text("eth1"), true, openconfig.ErrValue},
		{eth0 + "/subinterfaces/subinterface[index=x]/ipv4/addresses/address[ip=10.0.0.1]/state/ip", openconfig.Text("10.0.0.1"), true, openconfig.ErrValue},
		{eth0 + "/subinterfaces/subinterface[index=0]/ipv4/addresses/address[ip=2001::1]/state/ip", openconfig.Text("2001::1"), true, openconfig.ErrValue},
		{eth0 + "/subinterfaces/subinterface[index=0]/ipv4/addresses/address[ip=10.0.0.1]/state/prefix-length", openconfig.Number(33), true, openconfig.ErrValue},
		{"/system/processes/process[pid=x]/state/name", openconfig.Text("x"), true, openconfig.ErrValue},
		{"/tributary/trees/tree[group=x]/state/dropped", openconfig.Number(1), true, openconfig.ErrValue},
		{"/tributary/trees/tree[group=1]/state/group", openconfig.Number(2), true, openconfig.ErrValue},
	} {
		var d openconfig.Device
		known, err := set(&d, test.path, test.value)
		if known != test.known || !errors.Is(err, test.err) || err != nil && !strings.Contains(err.Error(), test.path) {
			t.Errorf("%s = %v: %v, %v", test.path, test.value, known, err)
		}
		if diff := cmp.Diff(openconfig.Device{}, d, same); diff != "" {
			t.Errorf("%s changed: %s", test.path, diff)
		}
	}
}

// TestOthers: what targets of other vendors send is read.
func TestOthers(t *testing.T) {
	var d openconfig.Device
	for _, leaf := range []struct {
		path  string
		value openconfig.Value
	}{
		{"/openconfig-interfaces:interfaces/interface[name=Ethernet0]/state/counters/in-octets", openconfig.Text("18446744073709551615")},
		{"/interfaces/interface[name=Ethernet0]/ethernet/state/negotiated-port-speed", openconfig.Text("openconfig-if-ethernet:SPEED_100GB")},
		{"/interfaces/interface[name=Ethernet0]/ethernet/state/port-speed", openconfig.Text("SPEED_UNKNOWN")},
		{"/lldp/interfaces/interface[name=Ethernet0]/neighbors/neighbor[id=1]/state/management-address", openconfig.Text("10.0.0.9")},
		{"/lldp/interfaces/interface[name=Ethernet0]/neighbors/neighbor[id=1]/capabilities/capability[name=openconfig-lldp-types:ROUTER]/state/enabled", openconfig.Of(true)},
		{"/system/cpus/cpu[index=0]/state/total/instant", openconfig.Number(9)},
	} {
		if known, err := set(&d, leaf.path, leaf.value); err != nil || !known {
			t.Errorf("%s: %v, %v", leaf.path, known, err)
		}
	}
	i := d.Interfaces["Ethernet0"]
	if i.Counters.InBytes != openconfig.Counted(1<<64-1) || i.Speed != 100e9 || d.CPU.Said {
		t.Errorf("%+v", i)
	}
	n := i.Neighbors[0]
	if got := n.Addresses(); len(got) != 1 || got[0].String() != "10.0.0.9" || !n.Can("ROUTER") || n.Can("MAC_BRIDGE") {
		t.Errorf("%+v", n)
	}
	const lldp = "/lldp/interfaces/interface[name=Ethernet0]/neighbors"
	for _, path := range []string{lldp, "/interfaces"} {
		p, err := openconfig.ParsePath(path)
		if err != nil {
			t.Fatal(err)
		}
		if d.Delete(p); len(i.Neighbors) > 0 || path != lldp && d.Interfaces != nil {
			t.Errorf("%s left %+v", path, d)
		}
	}
}

// TestDeleteLooks: what names one interface, or nothing of the schema, is not compared with
// the leaves of all.
func TestDeleteLooks(t *testing.T) {
	d := openconfig.Device{Interfaces: map[string]*openconfig.Interface{}}
	for i := range 1000 {
		name := fmt.Sprint("eth", i)
		d.Interfaces[name] = &openconfig.Interface{Name: name, Admin: openconfig.Up, Oper: openconfig.Up}
	}
	for _, test := range []struct {
		path   string
		most   int
		remain int
	}{
		{"/interfaces/interface[name=eth7]/state/mtu", 1, 1000},
		{"/interfaces/interface[name=none]", 1, 1000},
		{"/.../bgp", 1, 1000},
		{"/interfaces/interface[name=eth7]", 3, 999},
		{"/lldp", 3000, 999},
		{"/interfaces/interface[name=*]/state/oper-status", 3000, 999},
		{"/interfaces", 3000, 0},
		{"/interfaces", 0, 0},
	} {
		p, err := openconfig.ParsePath(test.path)
		if err != nil {
			t.Fatal(err)
		}
		if n := d.Delete(p); n > test.most || len(d.Interfaces) != test.remain {
			t.Errorf("%s looks at %d leaves, and leaves %d interfaces", test.path, n, len(d.Interfaces))
		}
	}
}
