package loopback

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"syscall"
)

// Ports of an address that is claimed. They are none that a system gives to who
// asks for any, on whatever address.
const (
	door  = 4700 // who listens there has the address
	first = 4701 // for who needs just one
)

// attempts at an address that nobody has claimed.
const attempts = 100

// A Claim is an address of the loopback interface that no other Claim has, of
// this or another process, until it is released or its process ends.
type Claim struct {
	addr netip.Addr
	door net.Listener // nil: the address is shared
}

// New claims an address. Where the system has no other than 127.0.0.1 (Linux has
// all of 127.0.0.0/8), that is what all get, and they share its ports.
func New() (*Claim, error) {
	for range attempts {
		// Not those of the lower half, which other programs use.
		addr := netip.AddrFrom4([4]byte{127, byte(128 + rand.N(128)), byte(rand.N(256)), byte(1 + rand.N(254))})
		c, err := claim(addr)
		switch {
		case err == nil:
			return c, nil
		case errors.Is(err, syscall.EADDRNOTAVAIL):
			return &Claim{addr: netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
		case !errors.Is(err, syscall.EADDRINUSE):
			return nil, fmt.Errorf("loopback: %w", err)
		}
	}
	return nil, fmt.Errorf("loopback: port %d is in use on each of %d addresses of 127.128.0.0/9", door, attempts)
}

func claim(addr netip.Addr) (*Claim, error) {
	l, err := net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(netip.AddrPortFrom(addr, door)))
	if err != nil {
		return nil, err
	}
	return &Claim{addr, l}, nil
}

// Listen returns what to listen at, "host:port", for any free port of the
// address.
func (c *Claim) Listen() string { return netip.AddrPortFrom(c.addr, 0).String() }

// Release lets the address go.
func (c *Claim) Release() error {
	if c.door == nil {
		return nil
	}
	return c.door.Close()
}

// Test is what Address needs of a testing.TB.
type Test interface {
	Helper()
	Cleanup(func())
	Fatal(...any)
}

// Address returns what to listen at, "host:port", that is the test's alone until
// it ends: it may listen there, end and listen again, and where it does not,
// nobody does. Where the system has only 127.0.0.1, the port is 0 instead.
func Address(t Test) string {
	t.Helper()
	c, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Release() })
	if c.door == nil {
		return c.Listen()
	}
	return netip.AddrPortFrom(c.addr, first).String()
}
