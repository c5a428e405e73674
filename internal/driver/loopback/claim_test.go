package loopback

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
)

// own skips where a system's only address is shared.
func own(t *testing.T) *Claim {
	t.Helper()
	c, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if c.door == nil {
		t.Skip("this system has no address but 127.0.0.1")
	}
	t.Cleanup(func() { _ = c.Release() })
	return c
}

func TestClaimsDiffer(t *testing.T) {
	a, b := own(t), own(t)
	if a.addr == b.addr || !a.addr.IsLoopback() {
		t.Errorf("%v and %v", a.addr, b.addr)
	}
	if _, err := claim(a.addr); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("claiming %v a second time: %v", a.addr, err)
	}
	if err := a.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := claim(a.addr)
	if err != nil {
		t.Fatalf("it was released: %v", err)
	}
	if err := again.Release(); err != nil {
		t.Error(err)
	}
}

// TestPortsAreNotTaken: a port is free again after it was used, also while
// others have the same of 127.0.0.1, and who calls it calls from there.
func TestPortsAreNotTaken(t *testing.T) {
	own(t)
	address := Address(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
	if err == nil { // else somebody else has it
		defer shared.Close()
	}
	for range 3 {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		p, err := net.ListenPacket("udp", address)
		if err != nil {
			t.Fatal(err)
		}
		for _, network := range []string{"tcp", "udp"} {
			c, err := net.Dial(network, address)
			if err != nil {
				t.Fatal(err)
			}
			if from := netip.MustParseAddrPort(c.LocalAddr().String()); from.Addr().String() != "127.0.0.1" {
				t.Errorf("%s: called from %v", network, from)
			}
			_ = c.Close()
		}
		_ = p.Close()
		_ = l.Close()
	}
}

func TestAddressOfOneTest(t *testing.T) {
	own(t)
	var address string
	t.Run("has it", func(t *testing.T) {
		if address = Address(t); address == Address(t) {
			t.Errorf("%s twice", address)
		}
	})
	c, err := claim(netip.MustParseAddrPort(address).Addr())
	if err != nil {
		t.Fatalf("the test has ended: %v", err)
	}
	_ = c.Release()
}
