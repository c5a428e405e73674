package nic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// System returns the interfaces of this machine.
func System() Source { return system{} }

type system struct{}

// attempts bounds the repetitions of a list that changed while it was read.
const attempts = 5

// Read implements Source.
func (system) Read() ([]Interface, error) {
	for i := 1; ; i++ {
		all, err := read()
		if i == attempts || !errors.Is(err, netlink.ErrDumpInterrupted) {
			return all, err
		}
	}
}

func read() ([]Interface, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("nic: listing interfaces: %w", err)
	}
	addresses, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("nic: listing addresses: %w", err)
	}
	of := map[int][]netip.Prefix{}
	for _, a := range addresses {
		if ip, ok := netip.AddrFromSlice(a.IP); ok {
			bits, _ := a.Mask.Size()
			of[a.LinkIndex] = append(of[a.LinkIndex], netip.PrefixFrom(ip.Unmap(), bits))
		}
	}
	speeds, err := openSpeeds()
	if err != nil {
		return nil, fmt.Errorf("nic: reading speeds: %w", err)
	}
	defer speeds.close()
	var all []Interface
	for _, l := range links {
		if attrs := l.Attrs(); attrs.Flags&net.FlagLoopback == 0 {
			i := describe(attrs, of[attrs.Index])
			i.Kind = l.Type()
			i.Speed = speeds.of(i.Name)
			all = append(all, i)
		}
	}
	slices.SortFunc(all, func(a, b Interface) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

func describe(attrs *netlink.LinkAttrs, addresses []netip.Prefix) Interface {
	i := Interface{
		Name: attrs.Name, Alias: attrs.Alias, Index: attrs.Index, Enabled: attrs.Flags&net.FlagUp != 0, Up: canCarry(attrs),
		Ethernet: attrs.EncapType == "ether", MAC: attrs.HardwareAddr, MTU: attrs.MTU,
	}
	slices.SortFunc(addresses, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	for _, a := range addresses {
		i.Addresses, i.Bits = append(i.Addresses, a.Addr()), append(i.Bits, a.Bits())
	}
	if s := attrs.Statistics; s != nil {
		i.Traffic = Traffic{PacketsIn: s.RxPackets, BytesIn: s.RxBytes, PacketsOut: s.TxPackets, BytesOut: s.TxBytes}
		i.Losses = Losses{ErrorsIn: s.RxErrors, DropsIn: s.RxDropped, ErrorsOut: s.TxErrors, DropsOut: s.TxDropped}
	}
	return i
}

// canCarry reports whether an interface is up: by its carrier, which is there now, where
// the operational state follows within a second. Interfaces that do not report a carrier,
// such as tunnels, have one.
func canCarry(a *netlink.LinkAttrs) bool {
	const carries = unix.IFF_UP | unix.IFF_LOWER_UP
	return a.RawFlags&carries == carries && a.RawFlags&unix.IFF_DORMANT == 0
}

// Watch implements Source.
func (system) Watch(ctx context.Context, changed func()) error {
	var failed failure
	done := make(chan struct{})
	links, addresses := make(chan netlink.LinkUpdate), make(chan netlink.AddrUpdate)
	if err := netlink.LinkSubscribeWithOptions(links, done, netlink.LinkSubscribeOptions{ErrorCallback: failed.note}); err != nil {
		return fmt.Errorf("nic: watching interfaces: %w", err)
	}
	err := netlink.AddrSubscribeWithOptions(addresses, done, netlink.AddrSubscribeOptions{ErrorCallback: failed.note})
	if err != nil {
		close(addresses) // nobody else will
	}
	defer func() {
		close(done)
		for range links { // until the subscriptions have ended
		}
		for range addresses {
		}
	}()
	if err != nil {
		return fmt.Errorf("nic: watching addresses: %w", err)
	}
	for ok := true; ok; {
		changed()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case _, ok = <-links:
		case _, ok = <-addresses:
		}
	}
	return fmt.Errorf("nic: watching interfaces: %w", failed.last())
}

// failure keeps the last error of the subscriptions.
type failure struct {
	mu  sync.Mutex
	err error
}

func (f *failure) note(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// errEnded is of a subscription that ended and did not say why.
var errEnded = errors.New("the subscription has ended")

func (f *failure) last() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		return errEnded
	}
	return f.err
}
