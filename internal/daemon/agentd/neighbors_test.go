package agentd_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/driver/lldp"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
)

// TestLLDPSettings: what is wrong is an error before anything listens.
func TestLLDPSettings(t *testing.T) {
	for says, l := range map[string]*agentd.LLDP{
		"interval":               {Interval: time.Nanosecond},
		"pattern":                {Exclude: []string{"["}},
		"9 management addresses": {Management: make([]netip.Addr, 9)},
	} {
		c := config()
		c.LLDP = l
		if _, err := agentd.Start(c); !errors.Is(err, agentd.ErrConfig) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want that it says %q", err, says)
		}
	}
}

// TestLLDPThatCannotBe: an agent goes without, unless it is required; on a loopback address
// it does not try.
func TestLLDPThatCannotBe(t *testing.T) {
	var none nic.Fake
	none.Set(nil, nic.ErrUnsupported)
	c := config()
	c.LLDP = &agentd.LLDP{Interfaces: &none}
	start(t, c)
	c.LLDP.Management = []netip.Addr{local}
	start(t, c)
	c.LLDP.Required = true
	if _, err := agentd.Start(c); !errors.Is(err, nic.ErrUnsupported) || !strings.Contains(err.Error(), "leaf-0") {
		t.Errorf("%v", err)
	}
}

// TestLLDPEnds: an agent with LLDP starts where it may, and ends by either way.
func TestLLDPEnds(t *testing.T) {
	var none nic.Fake
	c := config()
	c.LLDP = &agentd.LLDP{Interfaces: &none, Required: true}
	d, err := agentd.Start(c)
	if errors.Is(err, lldp.ErrPermission) || errors.Is(err, lldp.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	if d, err = agentd.Start(c); err != nil {
		t.Fatal(err)
	}
	d.Kill()
}
