package nic

import (
	"context"
	"errors"
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

// Interface is a network interface.
type Interface struct {
	Name      string
	Up        bool // it can carry packets: it is set up, and its carrier is there where it reports one
	Addresses []netip.Addr
	Traffic   Traffic
}

// Has reports whether a is an address of i.
func (i *Interface) Has(a netip.Addr) bool { return slices.Contains(i.Addresses, a) }

// Same reports whether two lists of interfaces differ in nothing but traffic.
func Same(x, y []Interface) bool {
	return slices.EqualFunc(x, y, func(a, b Interface) bool {
		return a.Name == b.Name && a.Up == b.Up && slices.Equal(a.Addresses, b.Addresses)
	})
}

// Source reports interfaces. It is safe for concurrent use.
type Source interface {
	// Read returns the interfaces that have an address, by name, loopback
	// interfaces excepted; the addresses of each are in rising order.
	Read() ([]Interface, error)

	// Watch calls changed at its begin, and then soon after each change of an
	// interface other than its traffic. It may call it without a change. It
	// returns when the context ends, or with an error when it cannot watch any
	// longer.
	Watch(ctx context.Context, changed func()) error
}
