package rails

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
)

// Errors about rails that a machine does not have, and why they carry nothing. They are
// wrapped; use errors.Is.
var (
	ErrNoInterface = errors.New("no such interface")
	ErrNoAddress   = errors.New("no such address")
	ErrNoCarrier   = errors.New("the interface has no carrier")
	ErrDisabled    = errors.New("the interface is not set up")
	ErrTwice       = errors.New("two rails at one address")
)

// Rail is a rail of this host. The port of its address is 0 where any will do.
type Rail struct {
	rail.Rail
	Interface string // empty: loopback, or not known
}

// Wish is what a user says of a rail: an interface, an address, or both.
type Wish struct {
	Name      string // empty: that of the interface, or the address
	Interface string
	Address   netip.Addr // zero: the first one of the interface, of IPv4 if it has one
	Port      uint16     // 0: any
	Kind      rail.Kind
	Bandwidth uint64 // bit/s; 0: as the interface's driver says
	Network   string
}

// Resolve returns the rails that a user wishes, on a machine with these interfaces. The
// errors are ErrNoInterface, ErrNoAddress and ErrTwice.
func Resolve(wishes []Wish, all []nic.Interface) ([]Rail, error) {
	found := make([]Rail, len(wishes))
	for i := range wishes {
		r, err := wishes[i].resolve(all)
		if err != nil {
			return nil, fmt.Errorf("rail %s: %w", cmp.Or(wishes[i].Name, fmt.Sprint(i+1)), err)
		}
		found[i] = r
	}
	distinguish(found, wishes)
	for i := range found {
		for j := range found[:i] {
			if err := found[i].Collides(&found[j]); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// Collides reports that two rails are one: of one kind, at one IP address.
func (r *Rail) Collides(o *Rail) error {
	if r.Kind == o.Kind && r.Address.Addr() == o.Address.Addr() {
		return fmt.Errorf("%w: rails %s and %s are both at %v %v", ErrTwice, o.Name, r.Name, r.Kind, r.Address.Addr())
	}
	return nil
}

func (w *Wish) resolve(all []nic.Interface) (Rail, error) {
	address := w.Address.Unmap()
	r := Rail{Rail: rail.Rail{Name: w.Name, Kind: w.Kind, Network: w.Network, Bandwidth: w.Bandwidth}, Interface: w.Interface}
	i := slices.IndexFunc(all, func(i nic.Interface) bool {
		return i.Name == w.Interface || w.Interface == "" && i.Has(address)
	})
	switch {
	case i >= 0:
		on := &all[i]
		if !address.IsValid() {
			address = first(on)
		}
		n := slices.Index(on.Addresses, address)
		if n < 0 && !w.Address.IsValid() {
			return Rail{}, fmt.Errorf("%w: %s has no address that others could reach", ErrNoAddress, on.Name)
		} else if n < 0 {
			return Rail{}, fmt.Errorf("%w: %s has not %v, but %v", ErrNoAddress, on.Name, address, on.Addresses)
		}
		r.Interface, r.Bits, r.Bandwidth = on.Name, uint8(on.Prefix(n).Bits()), cmp.Or(w.Bandwidth, on.Speed)
	case w.Interface != "":
		return Rail{}, fmt.Errorf("%w: %s; there are %s", ErrNoInterface, w.Interface, names(all))
	case address.IsLoopback():
		r.Bits = uint8(address.BitLen())
		if address.Is4() {
			r.Bits = 8 // all of 127.0.0.0/8
		}
	case all != nil:
		return Rail{}, fmt.Errorf("%w: no interface has %v; there are %s", ErrNoAddress, address, names(all))
	}
	r.Address = netip.AddrPortFrom(address, w.Port)
	return r, nil
}

// names lists interfaces for people.
func names(all []nic.Interface) string {
	if len(all) == 0 {
		return "none but loopback"
	}
	list := make([]string, len(all))
	for i := range all {
		list[i] = fmt.Sprintf("%s %v", all[i].Name, all[i].Addresses)
	}
	return strings.Join(list, ", ")
}

// distinguish gives names to the rails that the user gave none.
func distinguish(found []Rail, wishes []Wish) {
	for i := range found {
		if wishes[i].Name != "" {
			continue
		}
		base := cmp.Or(found[i].Interface, found[i].Address.Addr().String())
		if found[i].Kind != rail.TCP {
			base += "/" + found[i].Kind.String()
		}
		name := base
		for n := 2; slices.ContainsFunc(found, func(r Rail) bool { return r.Name == name }); n++ {
			name = fmt.Sprintf("%s#%d", base, n)
		}
		found[i].Name = name
	}
}

// first returns the first address of an interface that others may reach, of IPv4 if it has
// one; the zero Addr if it has none.
func first(i *nic.Interface) netip.Addr { return firstOf(i, netip.IPv4Unspecified()) }

func firstOf(i *nic.Interface, family netip.Addr) (found netip.Addr) {
	for _, a := range i.Addresses {
		switch {
		case !a.IsGlobalUnicast():
		case a.Is4() == family.Is4():
			return a
		case !found.IsValid():
			found = a
		}
	}
	return found
}

// Find returns the rails that a machine has: an interface each that is up and has an address
// that others may reach, of the family of the unspecified address on which the host listens
// if there is one. It returns rail.MaxRails at most, in the order of names.
func Find(all []nic.Interface, listen netip.Addr) []Rail {
	var wishes []Wish
	for i := range all {
		a := firstOf(&all[i], listen)
		isTaken := slices.ContainsFunc(wishes, func(w Wish) bool { return w.Address == a })
		if !all[i].Up || !a.IsValid() || listen.Is4() && !a.Is4() || isTaken || len(wishes) == rail.MaxRails {
			continue
		}
		wishes = append(wishes, Wish{Interface: all[i].Name, Address: a})
	}
	found, err := Resolve(wishes, all)
	if err != nil {
		return nil // it cannot be: they are there
	}
	return found
}

// Fault returns why a rail carries nothing; nil: it may carry.
func (r *Rail) Fault(all []nic.Interface) error {
	if r.Interface == "" {
		return nil
	}
	i := slices.IndexFunc(all, func(i nic.Interface) bool { return i.Name == r.Interface })
	switch {
	case i < 0:
		return fmt.Errorf("%w: %s", ErrNoInterface, r.Interface)
	case !all[i].Enabled:
		return fmt.Errorf("%s: %w", r.Interface, ErrDisabled)
	case !all[i].Up:
		return fmt.Errorf("%s: %w", r.Interface, ErrNoCarrier)
	case !all[i].Has(r.Address.Addr()):
		return fmt.Errorf("%w: %s has not %v", ErrNoAddress, r.Interface, r.Address.Addr())
	}
	return nil
}
