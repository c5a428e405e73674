package netlab

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
)

func TestRailsConfig(t *testing.T) {
	good := RailsConfig{Prefix: "x", Hosts: 2, Rates: []int64{0, 1000}}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for _, change := range []func(*RailsConfig){
		func(c *RailsConfig) { c.Prefix = "X" },
		func(c *RailsConfig) { c.Hosts = 1 },
		func(c *RailsConfig) { c.Hosts = MaxRailHosts + 1 },
		func(c *RailsConfig) { c.Rates = nil },
		func(c *RailsConfig) { c.Rates = make([]int64, MaxRails+1) },
		func(c *RailsConfig) { c.Rates = []int64{-1} },
	} {
		c := good
		change(&c)
		if err := c.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", c, err)
		}
		if f, err := BuildRails(c); err == nil {
			t.Errorf("%+v was built", c)
			_ = f.Close()
		}
	}
}

func TestParseRates(t *testing.T) {
	if got, err := ParseRates("200mbit, 100mbit,unshaped"); err != nil || !slices.Equal(got, []int64{200_000_000, 100_000_000, 0}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := ParseRates("200mbit,x"); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
}

func TestParseFault(t *testing.T) {
	for f := Works; f <= In; f++ {
		if got, err := ParseFault(f.String()); got != f || err != nil {
			t.Errorf("%v: %v, %v", f, got, err)
		}
	}
	if _, err := ParseFault("sideways"); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
}

// TestRailAddresses expects one subnet for each rail, and addresses that differ.
func TestRailAddresses(t *testing.T) {
	seen := map[netip.Addr]bool{}
	for rail := range MaxRails {
		for host := range MaxRailHosts {
			a := railAddress(host, rail)
			if seen[a.Addr()] || a.Masked() != railAddress(0, rail).Masked() {
				t.Fatalf("host %d, rail %d: %v", host, rail, a)
			}
			seen[a.Addr()] = true
		}
	}
}

// TestShareOf expects that each core is one host's, and that each host has one.
func TestShareOf(t *testing.T) {
	for n := 1; n < 10; n++ {
		for hosts := 1; hosts < 10; hosts++ {
			users := make([]int, n)
			for host := range hosts {
				first, end := shareOf(n, host, hosts)
				if first >= end || end > n {
					t.Fatalf("%d cores: host %d of %d has %d to %d", n, host, hosts, first, end)
				}
				for core := first; core < end; core++ {
					users[core]++
				}
			}
			if least, most := slices.Min(users), slices.Max(users); least < 1 && hosts >= n || most-least > 1 {
				t.Errorf("%d cores, %d hosts: users %v", n, hosts, users)
			}
		}
	}
}
