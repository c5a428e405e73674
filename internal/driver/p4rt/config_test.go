package p4rt

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-fabric/tributary/p4"
)

func TestConfigValidate(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no target":          func(c *Config) { c.Target = "" },
		"no port":            func(c *Config) { c.Target = "10.0.0.1" },
		"empty port":         func(c *Config) { c.Target = "10.0.0.1:" },
		"no path":            func(c *Config) { c.Target = "unix:" },
		"no election":        func(c *Config) { c.Election = Election{} },
		"negative deadline":  func(c *Config) { c.Deadline = -1 },
		"negative room":      func(c *Config) { c.Packets = -1 },
		"pauses":             func(c *Config) { c.MinPause, c.MaxPause = 2*time.Second, time.Second },
		"no program":         func(c *Config) { c.Pipeline = Pipeline{} },
		"no device":          func(c *Config) { c.Pipeline.Device = nil },
		"broken P4Info":      func(c *Config) { c.Pipeline.P4Info = "tables {" },
		"broken JSON":        func(c *Config) { c.Pipeline.Device = []byte("{") },
		"JSON without table": func(c *Config) { c.Pipeline.Device = replaced(toyDevice, "ingress.pairs", "ingress.peers") },
		"JSON without action": func(c *Config) {
			c.Pipeline.Device = replaced(toyDevice, `"ingress.copy"`, `"ingress.clone"`)
		},
	} {
		c := configOf("127.0.0.1:9559")
		change(&c)
		if err := c.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
		if client, err := Dial(c); err == nil {
			client.Close()
			t.Errorf("%s: dialled", name)
		}
	}
	for target, want := range map[string]string{
		"127.0.0.1:9559": "tcp 127.0.0.1:9559", "[::1]:9559": "tcp [::1]:9559", "switch.example:9559": "tcp switch.example:9559",
		"/run/s": "unix /run/s", "unix:/run/s": "unix /run/s", "unix:///run/s": "unix /run/s",
	} {
		c := configOf(target)
		network, address, err := NetworkOf(target)
		if got := network + " " + address; err != nil || got != want || c.Validate() != nil {
			t.Errorf("%s: %s, %v; want %s", target, got, errors.Join(err, c.Validate()), want)
		}
	}
	other := configOf("127.0.0.1:1")
	other.Pipeline.Device = []byte("\x01binary of another kind of target")
	if err := other.Validate(); err != nil {
		t.Errorf("a device configuration that is no JSON: %v", err)
	}
	other.MinPause = 2 * DefaultMaxPause
	other.MaxPause = 0
	if err := other.Validate(); err != nil {
		t.Errorf("a pause above the default's longest: %v", err)
	}
}

func replaced(b []byte, old, by string) []byte {
	return []byte(strings.ReplaceAll(string(b), old, by))
}

func TestFingerprint(t *testing.T) {
	prints := map[uint32]string{toy.fingerprint(): "the program"}
	for name, p := range map[string]Pipeline{
		"another P4Info": {P4Info: strings.Replace(toyInfo, "size: 64", "size: 65", 1), Device: toyDevice},
		"another device": {P4Info: toyInfo, Device: replaced(toyDevice, "64", "65")},
		"a byte moved":   {P4Info: toyInfo + string(toyDevice[:1]), Device: toyDevice[1:]},
	} {
		if same, taken := prints[p.fingerprint()]; taken {
			t.Errorf("%s has the fingerprint of %s", name, same)
		}
		prints[p.fingerprint()] = name
	}
	if a, b := toy.cookie(1), toy.cookie(2); a == b || a>>32 != b>>32 {
		t.Errorf("cookies %#x and %#x", a, b)
	}
}

// tributary is the project's own program.
var tributary = Pipeline{P4Info: p4.Info(), Device: p4.DeviceConfig(), Order: p4.TableOrder()}

// someTree is a switch with one tree, in an epoch.
func someTree(epoch uint32) p4.State {
	var s p4.State
	for i := range byte(3) {
		s.Ports = append(s.Ports, p4.Port{Number: uint16(i) + 1, Addr: netip.AddrFrom4([4]byte{10, 0, i, 1}), MAC: p4.MAC{2, 0, 0, 0, i, 1}})
		s.Routes = append(s.Routes, p4.Route{
			Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, i, 0}), 24), Port: uint16(i) + 1, MAC: p4.MAC{2, 0, 0, 0, i, 2},
		})
	}
	neighbour := func(i byte) netip.AddrPort { return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, i, 2}), 4791) }
	s.Trees = []p4.Tree{{Index: 0, Group: 1, Newest: epoch}}
	s.Epochs = []p4.Epoch{{
		Serial: uint64(epoch), Epoch: epoch, Cookie: 7, Window: 8, ChunkBytes: p4.Chunk, Probes: 3,
		Children: []p4.Child{{Addr: neighbour(0), Lowest: 0}, {Addr: neighbour(1), Lowest: 4}}, Parent: neighbour(2),
	}}
	return s
}

// What is translated fits the program.
func TestTributaryNormal(t *testing.T) {
	s, err := tributary.Schema()
	if err != nil {
		t.Fatal(err)
	}
	state := someTree(2)
	want, err := p4.Translate(&state)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Normal(want)
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v (-translated +normal):\n%s", err, d)
	}
}

func TestTributaryValidate(t *testing.T) {
	if err := tributary.Validate(); err != nil {
		t.Error(err)
	}
}
