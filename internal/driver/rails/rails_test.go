package rails_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/rails"
)

func port(name string, addresses ...string) nic.Interface {
	i := nic.Interface{Name: name, Enabled: true, Up: true, Speed: 1e9}
	for _, a := range addresses {
		p := netip.MustParsePrefix(a)
		i.Addresses, i.Bits = append(i.Addresses, p.Addr()), append(i.Bits, p.Bits())
	}
	return i
}

var (
	eth0    = port("eth0", "10.0.0.1/24", "10.0.0.5/24", "fd00::1/64")
	eth1    = port("eth1", "fe80::1/64", "fd01::1/64", "10.0.1.1/16")
	six     = port("six", "fe80::6/64", "fd06::1/64")
	bare    = port("bare", "fe80::7/64")
	machine = []nic.Interface{bare, eth0, eth1, six}
)

func TestResolve(t *testing.T) {
	address := netip.MustParseAddr
	for name, c := range map[string]struct {
		wish rails.Wish
		want string // the rail
		in   string // its interface
		err  error
	}{
		"an interface":              {wish: rails.Wish{Interface: "eth0"}, want: "eth0 (tcp 10.0.0.1:0/24)", in: "eth0"},
		"its address of IPv4":       {wish: rails.Wish{Interface: "eth1"}, want: "eth1 (tcp 10.0.1.1:0/16)", in: "eth1"},
		"no link-local address":     {wish: rails.Wish{Interface: "six", Port: 7}, want: "six (tcp [fd06::1]:7/64)", in: "six"},
		"an address":                {wish: rails.Wish{Address: address("10.0.0.5"), Kind: rail.UDP}, want: "eth0/udp (udp 10.0.0.5:0/24)", in: "eth0"},
		"both":                      {wish: rails.Wish{Name: "a", Interface: "eth0", Address: address("fd00::1"), Network: "n"}, want: "a (tcp [fd00::1]:0/64 in n)", in: "eth0"},
		"loopback":                  {wish: rails.Wish{Address: address("127.0.0.2")}, want: "127.0.0.2 (tcp 127.0.0.2:0/8)"},
		"loopback of IPv6":          {wish: rails.Wish{Address: address("::1")}, want: "::1 (tcp [::1]:0/128)"},
		"mapped":                    {wish: rails.Wish{Address: address("::ffff:10.0.0.1")}, want: "eth0 (tcp 10.0.0.1:0/24)", in: "eth0"},
		"no such interface":         {wish: rails.Wish{Interface: "eth9"}, err: rails.ErrNoInterface},
		"no address":                {wish: rails.Wish{Interface: "bare"}, err: rails.ErrNoAddress},
		"an address of nobody":      {wish: rails.Wish{Address: address("10.9.9.9")}, err: rails.ErrNoAddress},
		"another interface's":       {wish: rails.Wish{Interface: "eth1", Address: address("10.0.0.1")}, err: rails.ErrNoAddress},
		"a bandwidth of the user's": {wish: rails.Wish{Interface: "eth0", Bandwidth: 5}, want: "eth0 (tcp 10.0.0.1:0/24)", in: "eth0"},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := rails.Resolve([]rails.Wish{c.wish}, machine)
			if !errors.Is(err, c.err) {
				t.Fatal(err)
			}
			if err != nil {
				if !strings.HasPrefix(err.Error(), "rail 1: ") || !strings.Contains(err.Error(), "bare") && !strings.Contains(err.Error(), "eth1") {
					t.Errorf("it does not say what there is: %v", err)
				}
				return
			}
			r := found[0]
			if r.String() != c.want || r.Interface != c.in {
				t.Errorf("%v on %q, want %v on %q", r, r.Interface, c.want, c.in)
			}
			want := c.wish.Bandwidth
			if want == 0 && c.in != "" {
				want = 1e9
			}
			if r.Bandwidth != want {
				t.Errorf("%d bit/s, want %d", r.Bandwidth, want)
			}
		})
	}
	if _, err := rails.Resolve([]rails.Wish{{Address: address("10.0.0.1")}}, nil); err != nil {
		t.Errorf("interfaces are not known: %v", err)
	}
}

// TestNamesDiffer: rails without names get them.
func TestNamesDiffer(t *testing.T) {
	found, err := rails.Resolve([]rails.Wish{{Interface: "eth0"}, {Interface: "eth0", Kind: rail.UDP}, {Interface: "eth0", Address: eth0.Addresses[1]}, {Name: "eth0#2", Interface: "eth1"}}, machine)
	var names []string
	for _, r := range found {
		names = append(names, r.Name)
	}
	if want := []string{"eth0", "eth0/udp", "eth0#3", "eth0#2"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%v: %v, want %v", err, names, want)
	}
}

func TestFind(t *testing.T) {
	down := port("down", "10.0.7.1/24")
	down.Up = false
	find := func(listen string) (s []string) {
		for _, r := range rails.Find(append([]nic.Interface{down}, machine...), netip.MustParseAddr(listen)) {
			s = append(s, r.Address.Addr().String())
		}
		return s
	}
	if got, want := find("0.0.0.0"), []string{"10.0.0.1", "10.0.1.1"}; !slices.Equal(got, want) {
		t.Errorf("of IPv4 %v, want %v", got, want)
	}
	if got, want := find("::"), []string{"fd00::1", "fd01::1", "fd06::1"}; !slices.Equal(got, want) {
		t.Errorf("of both %v, want %v", got, want)
	}
	var many []nic.Interface
	for i, name := range strings.Split("abcdefghij", "") {
		many = append(many, port(name, fmt.Sprintf("10.0.%d.1/24", i)))
	}
	if all := rails.Find(append(many[:2:2], many...), netip.IPv4Unspecified()); len(all) != rail.MaxRails || all[2].Name != "c" {
		t.Errorf("with two interfaces of one address: %v", all)
	}
	if n := len(rails.Find(many, netip.IPv4Unspecified())); n != rail.MaxRails {
		t.Errorf("%d rails", n)
	}
}

// change is a call of Changed.
type change struct {
	rail  string
	fault error
}

func follow(t *testing.T, c rails.Config, source *nic.Fake) (*rails.Set, chan change) {
	t.Helper()
	changes := make(chan change, 16)
	c.Source, c.Log = source, slog.New(slog.DiscardHandler)
	c.Changed = func(r rails.Rail, fault error) { changes <- change{r.Name, fault} }
	s := rails.New(c)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return s, changes
}

// TestFaults: each way to lose a rail is reported once, with its reason, and so is its end.
func TestFaults(t *testing.T) {
	var source nic.Fake
	source.Set(machine, nil)
	all, err := rails.Resolve([]rails.Wish{{Interface: "eth0"}, {Interface: "eth1"}}, machine)
	if err != nil {
		t.Fatal(err)
	}
	s, changes := follow(t, rails.Config{Rails: all}, &source)
	for want, lose := range map[error]func(i *nic.Interface){
		rails.ErrNoInterface: func(i *nic.Interface) { i.Name = "other" },
		rails.ErrDisabled:    func(i *nic.Interface) { i.Enabled, i.Up = false, false },
		rails.ErrNoCarrier:   func(i *nic.Interface) { i.Up = false },
		rails.ErrNoAddress:   func(i *nic.Interface) { i.Addresses, i.Bits = i.Addresses[1:], i.Bits[1:] },
	} {
		bad := eth0
		lose(&bad)
		source.Set([]nic.Interface{bad, eth1}, nil)
		if c := <-changes; c.rail != "eth0" || !errors.Is(c.fault, want) {
			t.Fatalf("%s: %v, want %v", c.rail, c.fault, want)
		}
		if states := s.States(); states[0].Fault == nil || states[1].Fault != nil || states[0].Since.IsZero() {
			t.Errorf("states %v", states)
		}
		source.Set(machine, nil)
		if c := <-changes; c.rail != "eth0" || c.fault != nil {
			t.Fatalf("%s: %v, want none", c.rail, c.fault)
		}
	}
	source.Set(nil, errors.New("cannot be read")) // says nothing of rails
	source.Set([]nic.Interface{eth0}, nil)
	if c := <-changes; c.rail != "eth1" {
		t.Error(c)
	}
	s.Replace(all[:1])
	if states := s.States(); len(states) != 1 || states[0].Fault != nil {
		t.Errorf("states %v", states)
	}
}

// TestFound: an interface that appears is a rail, if rails are found.
func TestFound(t *testing.T) {
	var source nic.Fake
	source.Set([]nic.Interface{eth0}, nil)
	found := make(chan rails.Rail, 16)
	any := netip.IPv4Unspecified()
	follow(t, rails.Config{
		Rails: rails.Find([]nic.Interface{eth0}, any), Finds: true, Listen: any,
		Found: func(r rails.Rail) bool { found <- r; return true },
	}, &source)
	source.Set(machine, nil)
	if r := <-found; r.Name != "eth1" {
		t.Fatal(r)
	}
}

func addrPort(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }
