package hostlib

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/internal/driver/hooks"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/reduce"
)

// lo is the loopback interface, by which tests reach all of 127.0.0.0/8.
func lo(addresses ...string) nic.Interface {
	i := nic.Interface{Name: "lo", Enabled: true, Up: true, Speed: 1e9}
	for _, a := range addresses {
		i.Addresses, i.Bits = append(i.Addresses, netip.MustParseAddr(a)), append(i.Bits, 8)
	}
	return i
}

// joinRails joins as a host of a machine with these interfaces.
func joinRails(t *testing.T, name string, source *nic.Fake, c Config) *Host {
	t.Helper()
	return joinHooked(t, hooks.Hooks{Interfaces: source}, name, func(own *Config) { c.Name = name; *own = c })
}

// brief returns the rails of a host, without what differs from run to run.
func brief(h *Host) (list []string) {
	for _, r := range h.Rails() {
		host, _, _ := strings.Cut(r.Address, ":")
		s := r.Name + " " + host
		if !r.Up {
			s += " down"
		}
		if r.IsMade {
			s += " made"
		}
		list = append(list, s)
	}
	return list
}

func TestRailsOfAHost(t *testing.T) {
	var source nic.Fake
	source.Set([]nic.Interface{lo("127.0.0.1", "127.0.0.2")}, nil)
	for name, test := range map[string]struct {
		config Config
		want   []string
	}{
		"by default":            {Config{}, []string{"127.0.0.1 127.0.0.1"}},
		"an address":            {Config{Rails: []Rail{{Address: "127.0.0.2"}}}, []string{"lo 127.0.0.2"}},
		"two, one by its names": {Config{Rails: []Rail{{Address: "127.0.0.2:0", Name: "a"}, {Address: "127.0.0.1", Interface: "lo"}}}, []string{"a 127.0.0.2", "lo 127.0.0.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := brief(joinRails(t, "h0", &source, test.config)); !slices.Equal(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestRailsAreFound on the interfaces of a host that listens on all addresses.
func TestRailsAreFound(t *testing.T) {
	var source nic.Fake
	here := func(name, address string) nic.Interface {
		return nic.Interface{Name: name, Enabled: true, Up: true, Addresses: []netip.Addr{netip.MustParseAddr(address)}, Bits: []int{24}}
	}
	down := here("eth2", "10.0.2.1")
	down.Up = false
	source.Set([]nic.Interface{here("eth0", "10.0.0.1"), here("eth1", "10.0.1.1"), down, lo("127.0.0.1")}, nil)
	h := joinRails(t, "h0", &source, Config{Listen: "0.0.0.0:0", AllowPlaintext: true})
	if got, want := brief(h), []string{"eth0 10.0.0.1", "eth1 10.0.1.1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestBadRails(t *testing.T) {
	var source nic.Fake
	source.Set([]nic.Interface{lo("127.0.0.1", "127.0.0.2")}, nil)
	for want, rails := range map[string][]Rail{
		"neither an interface nor an address": {{}},
		"kind 7":                              {{Address: "127.0.0.1", Kind: 7}},
		"is not an IP address":                {{Address: "localhost:1"}},
		"two rails have the name a":           {{Name: "a", Address: "127.0.0.1"}, {Name: "a", Address: "127.0.0.2"}},
		"are both at":                         {{Name: "a", Address: "127.0.0.1:9"}, {Name: "b", Address: "127.0.0.1:9"}},
		"9 rails":                             slices.Repeat([]Rail{{Interface: "lo"}}, 9),
		"no such interface: eth9":             {{Interface: "eth9"}},
		"lo has not 127.0.0.9":                {{Interface: "lo", Address: "127.0.0.9"}},
		"no interface has 10.0.0.9":           {{Address: "10.0.0.9"}},
	} {
		_, err := Join(hooks.With(t.Context(), hooks.Hooks{Interfaces: &source}), Config{Name: "h0", Rails: rails})
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestRailsAtRunTime: rails are added and removed, and go down with their interface's address.
func TestRailsAtRunTime(t *testing.T) {
	var source nic.Fake
	source.Set([]nic.Interface{lo("127.0.0.1", "127.0.0.2")}, nil)
	h := joinRails(t, "h0", &source, Config{})
	check := func(want ...string) {
		t.Helper()
		if got := brief(h); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if err := h.AddRail(t.Context(), Rail{Name: "b", Address: "127.0.0.2"}); err != nil {
		t.Fatal(err)
	}
	check("127.0.0.1 127.0.0.1", "b 127.0.0.2 made")
	for want, r := range map[string]Rail{
		"there is a rail of that name": {Name: "b", Address: "127.0.0.1:7"},
		"two rails at one address":     {Name: "c", Address: "127.0.0.1:7"},
		"no such interface: eth9":      {Interface: "eth9"},
		"neither an interface":         {},
	} {
		if err := h.AddRail(t.Context(), r); !errors.Is(err, ErrArgument) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	check("127.0.0.1 127.0.0.1", "b 127.0.0.2 made")

	source.Set([]nic.Interface{lo("127.0.0.1")}, nil)
	until(within(t), t, "the rail is down", func() bool { return !h.Rails()[1].Up })
	check("127.0.0.1 127.0.0.1", "b 127.0.0.2 down made")
	if fault := h.Rails()[1].Fault; fault == nil || !strings.Contains(fault.Error(), "lo has not 127.0.0.2") {
		t.Errorf("it is down: %v", fault)
	}

	if err := h.RemoveRail(t.Context(), "127.0.0.1"); err != nil {
		t.Fatal(err)
	}
	check("b 127.0.0.2 down made")
	for name, want := range map[string]string{"b": "it is the only one", "c": "there is no such rail"} {
		if err := h.RemoveRail(t.Context(), name); !errors.Is(err, ErrArgument) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestRailsUnderAllreduces: rails of both kinds go and come while the communicator works.
func TestRailsUnderAllreduces(t *testing.T) {
	for _, kinds := range fewer([2]RailKind{RailTCP, RailTCP}, [2]RailKind{RailUDP, RailUDP}, [2]RailKind{RailTCP, RailUDP}) {
		t.Run(fmt.Sprint(kinds), func(t *testing.T) { testRailsUnderAllreduces(t, kinds) })
	}
}

func testRailsUnderAllreduces(t *testing.T, kinds [2]RailKind) {
	var source nic.Fake
	both := []nic.Interface{lo("127.0.0.1", "127.0.0.2")}
	source.Set(both, nil)
	var hosts []*Host
	var members []Member
	for _, name := range []string{"h0", "h1"} {
		h := joinRails(t, name, &source, Config{Rails: []Rail{{Name: "a", Address: "127.0.0.1", Kind: kinds[0]}, {Name: "b", Address: "127.0.0.2", Kind: kinds[1]}}})
		hosts, members = append(hosts, h), append(members, h.Member())
	}
	comms := form(t, "c", hosts, members, OnTree())
	for round, change := range []func() error{
		func() error { return nil },
		func() error { return hosts[0].RemoveRail(t.Context(), "b") },
		func() error {
			return hosts[0].AddRail(t.Context(), Rail{Name: "b", Address: "127.0.0.2", Kind: kinds[1]})
		},
		func() error { source.Set([]nic.Interface{lo("127.0.0.1")}, nil); return nil },
		func() error { source.Set(both, nil); return nil },
		func() error { return hosts[1].RemoveRail(t.Context(), "a") },
	} {
		done := make(chan error)
		go func() { done <- change() }()
		each(len(comms), func(i int) {
			for range 10 {
				vector := make([]int32, 200_000)
				for k := range vector {
					vector[k] = int32(k + i)
				}
				if _, err := Allreduce(within(t), comms[i], reduce.Sum, vector, vector); err != nil {
					t.Errorf("round %d: %v", round, err)
					return
				}
				for k, x := range vector {
					if x != int32(2*k+1) {
						t.Errorf("round %d: element %d is %d", round, k, x)
						return
					}
				}
			}
		})
		if err := <-done; err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}

// TestRailsAtOnce: what is followed is what the host has, whoever adds and removes rails at
// the same time.
func TestRailsAtOnce(t *testing.T) {
	var source nic.Fake
	source.Set([]nic.Interface{lo("127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4")}, nil)
	h := joinRails(t, "h0", &source, Config{})
	for round := range 300 {
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				name := fmt.Sprint("r", i)
				if err := h.AddRail(t.Context(), Rail{Name: name, Address: fmt.Sprintf("127.0.0.%d", i+2)}); err != nil {
					t.Error(err)
				}
				if i == 0 {
					return
				}
				if err := h.RemoveRail(t.Context(), name); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got, want := brief(h), []string{"127.0.0.1 127.0.0.1", "r0 127.0.0.2 made"}; !slices.Equal(got, want) {
			t.Fatalf("round %d: %q, want %q", round, got, want)
		}
		if err := h.RemoveRail(t.Context(), "r0"); err != nil {
			t.Fatal(err)
		}
	}
}
