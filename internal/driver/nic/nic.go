package nic

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
)

// ErrUnsupported: this system does not report its interfaces.
var ErrUnsupported = errors.New("nic: network interfaces are reported on Linux only")

// Traffic is packets and their bytes in both directions, frames' headers
// included, since the interface was made or the system began to count.
type Traffic struct {
	PacketsIn, BytesIn   uint64
	PacketsOut, BytesOut uint64
}

// Losses are packets that did not pass, by direction: those with errors, and
// those without that were dropped.
type Losses struct {
	ErrorsIn, DropsIn   uint64
	ErrorsOut, DropsOut uint64
}

// Interface is a network interface. Fields that the system does not report are
// zero.
type Interface struct {
	Name      string
	Alias     string // what its operator calls it
	Kind      string // as the system names it: device (of hardware), veth, vlan, bridge, ...
	Index     int
	Port      uint32 // its number as a port of a switch, where the system has one
	Enabled   bool   // it is set up
	Up        bool   // it can carry packets: it is set up, and its carrier is there where it reports one
	Ethernet  bool   // its frames are Ethernet's
	MAC       net.HardwareAddr
	MTU       int
	Speed     uint64 // bit/s, as the driver reports it
	Addresses []netip.Addr
	Bits      []int // the prefix length of each address
	Traffic   Traffic
	Losses    Losses
}

// Has reports whether a is an address of i.
func (i *Interface) Has(a netip.Addr) bool { return slices.Contains(i.Addresses, a) }

// Prefix returns the n-th address with its prefix length; without one where that is
// not known.
func (i *Interface) Prefix(n int) netip.Prefix {
	a := i.Addresses[n]
	if n < len(i.Bits) {
		return netip.PrefixFrom(a, i.Bits[n])
	}
	return netip.PrefixFrom(a, a.BitLen())
}

// Same reports whether two lists of interfaces differ in nothing but counters.
func Same(x, y []Interface) bool {
	return slices.EqualFunc(x, y, func(a, b Interface) bool {
		return a.Name == b.Name && a.Alias == b.Alias && a.Kind == b.Kind && a.Index == b.Index && a.Port == b.Port && a.Enabled == b.Enabled && a.Up == b.Up &&
			a.Ethernet == b.Ethernet && bytes.Equal(a.MAC, b.MAC) && a.MTU == b.MTU && a.Speed == b.Speed &&
			slices.Equal(a.Addresses, b.Addresses) && slices.Equal(a.Bits, b.Bits)
	})
}

// Addressed returns the interfaces that have an address.
func Addressed(all []Interface) []Interface {
	return slices.DeleteFunc(slices.Clone(all), func(i Interface) bool { return len(i.Addresses) == 0 })
}

// Source reports interfaces. It is safe for concurrent use.
type Source interface {
	// Read returns the interfaces, by name, loopback interfaces excepted; the
	// addresses of each are in rising order.
	Read() ([]Interface, error)

	// Watch calls changed at its begin, and then soon after each change of an
	// interface other than its counters. It may call it without a change. It
	// returns when the context ends, or with an error when it cannot watch any
	// longer.
	Watch(ctx context.Context, changed func()) error
}
