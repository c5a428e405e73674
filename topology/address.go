package topology

import (
	"errors"
	"fmt"
	"net/netip"
)

// ErrAddress is wrapped by every error about the address of a link's end.
var ErrAddress = errors.New("invalid address of a link's end")

// SetAddresses gives both ends of link l addresses, x to the end that Connect
// was given first. Both are of one family. Packets to an end's address must
// arrive over that link: its ends are alone in a subnet of their own, say. It
// fails for what no packet can be sent to, and for an address that an end of
// another link has: a *LinkError says which end it is about.
func (b *Builder) SetAddresses(l LinkID, x, y netip.Addr) error {
	if l < 0 || int(l) >= len(b.links) {
		return fmt.Errorf("set addresses: there is no link %d: %w", l, ErrLink)
	}
	pair := [2]netip.Addr{x.Unmap(), y.Unmap()}
	for end, a := range pair {
		if err := b.checkAddress(l, pair[1-end], a); err != nil {
			return &LinkError{Link: l, End: end, Err: err}
		}
	}
	if b.addresses == nil {
		b.addresses, b.addressed = map[LinkID][2]netip.Addr{}, map[netip.Addr]LinkID{}
	}
	for _, a := range b.addresses[l] {
		delete(b.addressed, a)
	}
	b.addresses[l] = pair
	for _, a := range pair {
		b.addressed[a] = l
	}
	return nil
}

func (b *Builder) checkAddress(l LinkID, other, a netip.Addr) error {
	switch {
	case !a.IsValid() || a.IsUnspecified() || a.IsMulticast() || a.Zone() != "":
		return fmt.Errorf("%v is none that packets can be sent to from elsewhere: %w", a, ErrAddress)
	case a == other:
		return fmt.Errorf("%v is that of both ends: %w", a, ErrAddress)
	case other.IsValid() && a.Is4() != other.Is4():
		return fmt.Errorf("%v and %v are of two families: %w", a, other, ErrAddress)
	}
	if taken, ok := b.addressed[a]; ok && taken != l {
		return fmt.Errorf("%v is that of an end of link %d, too: %w", a, taken, ErrAddress)
	}
	return nil
}

// joinAddresses returns the addresses by link, nil if no link has any.
func (b *Builder) joinAddresses() [][2]netip.Addr {
	if len(b.addresses) == 0 {
		return nil
	}
	all := make([][2]netip.Addr, len(b.links))
	for l, pair := range b.addresses {
		all[l] = pair
	}
	return all
}

// AddressAt returns the address that node n has on link l: what is sent to it
// arrives over that link. It is the zero Addr where the topology has none.
func (g *Graph) AddressAt(l LinkID, n NodeID) netip.Addr {
	if g.addresses == nil {
		return netip.Addr{}
	}
	return g.addresses[l][g.endOf(l, n)]
}
