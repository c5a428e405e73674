package openconfig

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
)

// The levels of an interface's LLDP neighbours.

var neighbors = level[Neighbor]{
	each: func(d *Device, yield func([]string, *Neighbor) bool) bool {
		return eachNeighbor(d, func(i *Interface, n *Neighbor) bool { return yield([]string{i.Name, n.ID}, n) })
	},
	find: func(d *Device, keys []string, create bool) (*Neighbor, error) {
		return d.neighbor(keys, create), nil
	},
	drop: func(d *Device, keys []string) { d.dropNeighbor(keys) },
}

func eachNeighbor(d *Device, yield func(*Interface, *Neighbor) bool) bool {
	return eachInterface(d, func(i *Interface) bool {
		for n := range i.Neighbors {
			if !yield(i, &i.Neighbors[n]) {
				return false
			}
		}
		return true
	})
}

// neighbor returns a neighbour, nil if there is none and it is not to be made.
func (d *Device) neighbor(keys []string, create bool) *Neighbor {
	i := d.named(keys[0], create)
	if i == nil {
		return nil
	}
	n := slices.IndexFunc(i.Neighbors, func(n Neighbor) bool { return n.ID == keys[1] })
	if n < 0 {
		if !create {
			return nil
		}
		n = len(i.Neighbors)
		i.Neighbors = append(i.Neighbors, Neighbor{ID: keys[1]})
	}
	return &i.Neighbors[n]
}

// dropNeighbor removes a neighbour of which nothing is left but its ID.
func (d *Device) dropNeighbor(keys []string) {
	i := d.Interfaces[keys[0]]
	i.Neighbors = compact(i.Neighbors, func(n Neighbor) bool {
		n.ID = ""
		return reflect.ValueOf(n).IsZero()
	})
	d.drop(keys[0])
}

var neighborLeaves = []leaf[Neighbor]{
	key(neighbor+"/state/id", func(n *Neighbor) string { return n.ID }),
	text(neighbor+"/state/chassis-id", func(n *Neighbor) *string { return &n.Chassis }),
	text(neighbor+"/state/chassis-id-type", func(n *Neighbor) *string { return &n.ChassisType }),
	text(neighbor+"/state/port-id", func(n *Neighbor) *string { return &n.Port }),
	text(neighbor+"/state/port-id-type", func(n *Neighbor) *string { return &n.PortType }),
	text(neighbor+"/state/port-description", func(n *Neighbor) *string { return &n.PortDescription }),
	text(neighbor+"/state/system-name", func(n *Neighbor) *string { return &n.SystemName }),
	text(neighbor+"/state/system-description", func(n *Neighbor) *string { return &n.SystemDescription }),
	number(neighbor+"/state/ttl", func(n *Neighbor) *uint16 { return &n.TTL }),
	alias(text(neighbor+"/state/management-address", func(n *Neighbor) *string { return &n.OldManagement })),
	text(ofTributary+"/role", func(n *Neighbor) *string { return &n.Tributary.Role }),
	text(ofTributary+"/name", func(n *Neighbor) *string { return &n.Tributary.Name }),
	number(ofTributary+"/agent-port", func(n *Neighbor) *uint16 { return &n.Tributary.AgentPort }),
	number(ofTributary+"/port", func(n *Neighbor) *uint32 { return &n.Tributary.Port }),
}

// capabilities is the list of what a neighbour can be.
var capabilities = level[Capability]{
	each: func(d *Device, yield func([]string, *Capability) bool) bool {
		return eachNeighbor(d, func(i *Interface, n *Neighbor) bool {
			for c := range n.Capabilities {
				if !yield([]string{i.Name, n.ID, n.Capabilities[c].Name}, &n.Capabilities[c]) {
					return false
				}
			}
			return true
		})
	},
	find: func(d *Device, keys []string, create bool) (*Capability, error) {
		name := Unqualified(keys[2])
		if name == "" {
			return nil, fmt.Errorf("a capability without a name")
		}
		n := d.neighbor(keys, create)
		if n == nil {
			return nil, nil
		}
		at := slices.IndexFunc(n.Capabilities, func(c Capability) bool { return c.Name == name })
		if at < 0 {
			if !create {
				return nil, nil
			}
			at = len(n.Capabilities)
			n.Capabilities = append(n.Capabilities, Capability{Name: name})
		}
		return &n.Capabilities[at], nil
	},
	drop: func(d *Device, keys []string) {
		n := d.neighbor(keys, false)
		n.Capabilities = compact(n.Capabilities, func(c Capability) bool { return c.Name == "" })
		d.dropNeighbor(keys)
	},
}

var capabilityLeaves = func() []leaf[Capability] {
	name := key(neighbor+"/capabilities/capability[name]/state/name", func(c *Capability) string { return c.Name })
	name.Identity = "openconfig-lldp-types"
	name.set = func(c *Capability, v Value) {
		if v.kind == None {
			c.Name = "" // gone
		}
	}
	name.check = func(keys []string, v Value) error {
		if is := Unqualified(keys[2]); v.text != is {
			return fmt.Errorf("the entry of %q says that it is %q", is, v.text)
		}
		return nil
	}
	return []leaf[Capability]{
		name, always(flag(neighbor+"/capabilities/capability[name]/state/enabled", func(c *Capability) *bool { return &c.Enabled })),
	}
}()

// management is the list of a neighbour's management addresses.
var management = level[netip.Addr]{
	each: func(d *Device, yield func([]string, *netip.Addr) bool) bool {
		return eachNeighbor(d, func(i *Interface, n *Neighbor) bool {
			for m := range n.Management {
				if !yield([]string{i.Name, n.ID, n.Management[m].String()}, &n.Management[m]) {
					return false
				}
			}
			return true
		})
	},
	find: func(d *Device, keys []string, create bool) (*netip.Addr, error) {
		a, err := netip.ParseAddr(keys[2])
		if err != nil || a.Zone() != "" {
			return nil, nil // a MAC address can be one, too
		}
		n := d.neighbor(keys, create)
		if n == nil {
			return nil, nil
		}
		at := slices.Index(n.Management, a)
		if at < 0 {
			if !create {
				return nil, nil
			}
			at = len(n.Management)
			n.Management = append(n.Management, a)
		}
		return &n.Management[at], nil
	},
	drop: func(d *Device, keys []string) {
		n := d.neighbor(keys, false)
		n.Management = compact(n.Management, func(a netip.Addr) bool { return !a.IsValid() })
		d.dropNeighbor(keys)
	},
}

var managementLeaves = func() []leaf[netip.Addr] {
	l := key(neighbor+"/mgmt-addresses/mgmt-address[address]/state/address", func(a *netip.Addr) string { return a.String() })
	l.set = func(a *netip.Addr, v Value) {
		if v.kind == None {
			*a = netip.Addr{} // gone
		}
	}
	return []leaf[netip.Addr]{l}
}()
