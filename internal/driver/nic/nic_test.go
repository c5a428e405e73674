package nic_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tributary-fabric/tributary/internal/driver/nic"
)

var one, two = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")

func TestSame(t *testing.T) {
	a := []nic.Interface{{Name: "p", Up: true, Addresses: []netip.Addr{one}, Traffic: nic.Traffic{BytesIn: 1}}}
	for name, test := range map[string]struct {
		other nic.Interface
		same  bool
	}{
		"traffic":        {nic.Interface{Name: "p", Up: true, Addresses: []netip.Addr{one}}, true},
		"another MTU":    {nic.Interface{Name: "p", Up: true, MTU: 1500, Addresses: []netip.Addr{one}}, false},
		"another MAC":    {nic.Interface{Name: "p", Up: true, MAC: net.HardwareAddr{2}, Addresses: []netip.Addr{one}}, false},
		"another length": {nic.Interface{Name: "p", Up: true, Addresses: []netip.Addr{one}, Bits: []int{24}}, false},
		"down":           {nic.Interface{Name: "p", Addresses: []netip.Addr{one}}, false},
		"another name":   {nic.Interface{Name: "q", Up: true, Addresses: []netip.Addr{one}}, false},
		"more addresses": {nic.Interface{Name: "p", Up: true, Addresses: []netip.Addr{one, two}}, false},
	} {
		if got := nic.Same(a, []nic.Interface{test.other}); got != test.same {
			t.Errorf("%s: same is %v", name, got)
		}
	}
	if nic.Same(a, nil) || !a[0].Has(one) || a[0].Has(two) {
		t.Error("an interface that is not there counts, or an address")
	}
}

func TestAddressed(t *testing.T) {
	with := nic.Interface{Name: "p", Addresses: []netip.Addr{one, two}, Bits: []int{24}}
	got := nic.Addressed([]nic.Interface{{Name: "o"}, with, {Name: "q"}})
	if len(got) != 1 || got[0].Name != "p" {
		t.Errorf("addressed: %v", got)
	}
	if a, b := with.Prefix(0), with.Prefix(1); a.String() != "10.0.0.1/24" || b.String() != "10.0.0.2/32" {
		t.Errorf("prefixes %v, %v", a, b)
	}
}

func TestFake(t *testing.T) {
	var f nic.Fake
	list := []nic.Interface{{Name: "p", Addresses: []netip.Addr{one}}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := make(chan []nic.Interface)
	ended := make(chan error)
	go func() {
		ended <- f.Watch(ctx, func() {
			all, err := f.Read()
			if err != nil {
				t.Error(err)
			}
			seen <- all
		})
	}()
	if all := <-seen; len(all) != 0 {
		t.Errorf("at first there is %v", all)
	}
	f.Set(list, nil)
	if diff := cmp.Diff(list, <-seen, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Error(diff)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	f.Set(list, nic.ErrUnsupported)
	if _, err := f.Read(); !errors.Is(err, nic.ErrUnsupported) {
		t.Errorf("read: %v", err)
	}
}
