package openconfig

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
)

// The lists of an interface in the modules that have one.
const (
	inInterfaces = "/openconfig-interfaces:interfaces/interface[name]"
	inLLDP       = "/openconfig-lldp:lldp/interfaces/interface[name]"
	inTributary  = "/tributary:tributary/interfaces/interface[name]"

	ethernet    = inInterfaces + "/openconfig-if-ethernet:ethernet"
	ipv4        = inInterfaces + "/subinterfaces/subinterface[index]/openconfig-if-ip:ipv4/addresses/address[ip]/state"
	ipv6        = inInterfaces + "/subinterfaces/subinterface[index]/openconfig-if-ip:ipv6/addresses/address[ip]/state"
	neighbor    = inLLDP + "/neighbors/neighbor[id]"
	ofTributary = inTributary + "/neighbors/neighbor[id]/state"
	system      = "/openconfig-system:system"
	lldp        = "/openconfig-lldp:lldp"
	own         = "/tributary:tributary"
	allCPUs     = "ALL"
)

// theTable is the one table of paths.
var theTable = func() *table {
	t := &table{rules: map[string]*rule{}, lists: map[string][]Key{}}
	add(t, level[Device]{
		each: func(d *Device, yield func([]string, *Device) bool) bool { return yield(nil, d) },
		find: func(d *Device, _ []string, _ bool) (*Device, error) { return d, nil },
	}, deviceLeaves)
	add(t, cpus, cpuLeaves)
	add(t, processes, processLeaves)
	add(t, interfaces, interfaceLeaves)
	add(t, addresses(netip.Addr.Is4), addressLeaves(ipv4, 32))
	add(t, addresses(netip.Addr.Is6), addressLeaves(ipv6, 128))
	add(t, neighbors, neighborLeaves)
	add(t, capabilities, capabilityLeaves)
	add(t, management, managementLeaves)
	add(t, agents, agentLeaves)
	add(t, counts(func(a *Agent) *map[string]uint64 { return &a.Drops }), countLeaves(own+"/drops/drop[reason]/state", "reason", "packets"))
	add(t, counts(func(a *Agent) *map[string]uint64 { return &a.Events }), countLeaves(own+"/events/event[name]/state", "name", "count"))
	add(t, trees, treeLeaves)
	return t
}()

var deviceLeaves = []leaf[Device]{
	text(system+"/state/hostname", func(d *Device) *string { return &d.Name }),
	number(system+"/state/boot-time", func(d *Device) *uint64 { return &d.BootTime }),
	text(system+"/state/software-version", func(d *Device) *string { return &d.Software }),
	number(system+"/memory/state/physical", func(d *Device) *uint64 { return &d.MemoryPhysical }),
	sampled(number(system+"/memory/state/used", func(d *Device) *uint64 { return &d.MemoryUsed })),
	sampled(number(system+"/memory/state/available", func(d *Device) *uint64 { return &d.MemoryFree })),
	flag(lldp+"/state/enabled", func(d *Device) *bool { return &d.LLDP }),
	text(lldp+"/state/chassis-id", func(d *Device) *string { return &d.Chassis }),
	text(lldp+"/state/chassis-id-type", func(d *Device) *string { return &d.ChassisType }),
	text(lldp+"/state/system-name", func(d *Device) *string { return &d.SystemName }),
	text(lldp+"/state/system-description", func(d *Device) *string { return &d.SystemDescription }),
}

// cpus is the list of processors, of which the entry for all together is read.
var cpus = level[Device]{
	each: func(d *Device, yield func([]string, *Device) bool) bool {
		return !d.CPU.Said || yield([]string{allCPUs}, d)
	},
	find: func(d *Device, keys []string, _ bool) (*Device, error) {
		if keys[0] != allCPUs {
			return nil, nil
		}
		return d, nil
	},
}

var cpuLeaves = []leaf[Device]{
	sampled(key(system+"/cpus/cpu[index]/state/index", func(*Device) string { return allCPUs })),
	count(system+"/cpus/cpu[index]/state/total/instant", 8, func(d *Device) *Count { return &d.CPU }),
}

// running is a process in its list.
type running = member[uint64, Process]

var processes = numbered("a process", func(d *Device, _ bool) *map[uint64]*Process { return &d.Processes })

var processLeaves = func() []leaf[running] {
	const at = system + "/processes/process[pid]/state"
	return []leaf[running]{
		numberKey[uint64, Process](at + "/pid"),
		sampled(text(at+"/name", func(r *running) *string { return &r.x.Name })),
		sampled(number(at+"/start-time", func(r *running) *uint64 { return &r.x.Start })),
		count(at+"/cpu-usage-user", 64, func(r *running) *Count { return &r.x.User }),
		count(at+"/cpu-usage-system", 64, func(r *running) *Count { return &r.x.System }),
		count(at+"/memory-usage", 64, func(r *running) *Count { return &r.x.Memory }),
	}
}()

// key is the leaf that repeats a list's key.
func key[T any](path string, value func(*T) string) leaf[T] {
	return leaf[T]{
		path: path, Leaf: Leaf{Kind: String},
		get: func(x *T) Value { return Text(value(x)) },
		set: func(*T, Value) {},
		check: func(keys []string, v Value) error {
			if is := keys[len(keys)-1]; v.text != is {
				return fmt.Errorf("the entry of %q says that it is %q", is, v.text)
			}
			return nil
		},
	}
}

var interfaces = level[Interface]{
	each: func(d *Device, yield func([]string, *Interface) bool) bool {
		return eachInterface(d, func(i *Interface) bool { return yield([]string{i.Name}, i) })
	},
	find: func(d *Device, keys []string, create bool) (*Interface, error) {
		return d.named(keys[0], create), nil
	},
	drop: func(d *Device, keys []string) { d.drop(keys[0]) },
}

func eachInterface(d *Device, yield func(*Interface) bool) bool {
	for _, name := range slices.Sorted(maps.Keys(d.Interfaces)) {
		if !yield(d.Interfaces[name]) {
			return false
		}
	}
	return true
}

// named returns an interface, nil if there is none and it is not to be made.
func (d *Device) named(name string, create bool) *Interface {
	i := d.Interfaces[name]
	if i == nil && create {
		if d.Interfaces == nil {
			d.Interfaces = map[string]*Interface{}
		}
		i = &Interface{Name: name}
		d.Interfaces[name] = i
	}
	return i
}

// drop removes an interface of which nothing is left but its name.
func (d *Device) drop(name string) {
	if i := d.Interfaces[name]; i != nil {
		rest := *i
		rest.Name = ""
		if reflect.ValueOf(rest).IsZero() {
			delete(d.Interfaces, name)
		}
	}
	if len(d.Interfaces) == 0 {
		d.Interfaces = nil
	}
}

var interfaceLeaves = []leaf[Interface]{
	key(inInterfaces+"/state/name", func(i *Interface) string { return i.Name }),
	identity(inInterfaces+"/state/type", "iana-if-type", func(i *Interface) *string { return &i.Type }),
	number(inInterfaces+"/state/ifindex", func(i *Interface) *uint32 { return &i.Index }),
	number(inInterfaces+"/state/openconfig-p4rt:id", func(i *Interface) *uint32 { return &i.Port }),
	text(inInterfaces+"/state/admin-status", func(i *Interface) *Status { return &i.Admin }),
	text(inInterfaces+"/state/oper-status", func(i *Interface) *Status { return &i.Oper }),
	number(inInterfaces+"/state/last-change", func(i *Interface) *uint64 { return &i.LastChange }),
	number(inInterfaces+"/state/mtu", func(i *Interface) *uint16 { return &i.MTU }),
	text(ethernet+"/state/mac-address", func(i *Interface) *string { return &i.MAC }),
	portSpeed(ethernet + "/state/port-speed"),
	alias(portSpeed(ethernet + "/state/negotiated-port-speed")),
	exactSpeed(inTributary + "/state/speed"),
	count(inInterfaces+"/state/counters/in-octets", 64, func(i *Interface) *Count { return &i.Counters.InBytes }),
	count(inInterfaces+"/state/counters/in-pkts", 64, func(i *Interface) *Count { return &i.Counters.InPackets }),
	count(inInterfaces+"/state/counters/in-errors", 64, func(i *Interface) *Count { return &i.Counters.InErrors }),
	count(inInterfaces+"/state/counters/in-discards", 64, func(i *Interface) *Count { return &i.Counters.InDiscards }),
	count(inInterfaces+"/state/counters/out-octets", 64, func(i *Interface) *Count { return &i.Counters.OutBytes }),
	count(inInterfaces+"/state/counters/out-pkts", 64, func(i *Interface) *Count { return &i.Counters.OutPackets }),
	count(inInterfaces+"/state/counters/out-errors", 64, func(i *Interface) *Count { return &i.Counters.OutErrors }),
	count(inInterfaces+"/state/counters/out-discards", 64, func(i *Interface) *Count { return &i.Counters.OutDiscards }),
	number(inTributary+"/state/latency", func(i *Interface) *uint64 { return &i.Latency }),
	flag(inLLDP+"/state/enabled", func(i *Interface) *bool { return &i.LLDP }),
}

// portSpeed is a speed that OpenConfig has an identity for.
func portSpeed(path string) leaf[Interface] {
	return leaf[Interface]{
		path: path, Leaf: Leaf{Kind: String, Identity: "openconfig-if-ethernet"},
		get: func(i *Interface) Value {
			if name := speedName(i.Speed); name != "" {
				return Text(name)
			}
			return Value{}
		},
		set: func(i *Interface, v Value) {
			if s, known := speeds[v.text]; known || v.kind == None { // others, such as SPEED_UNKNOWN, say nothing
				i.Speed = s
			}
		},
	}
}

// exactSpeed is a speed that OpenConfig has no identity for.
func exactSpeed(path string) leaf[Interface] {
	l := number(path, func(i *Interface) *uint64 { return &i.Speed })
	get := l.get
	l.get = func(i *Interface) Value {
		if speedName(i.Speed) != "" {
			return Value{}
		}
		return get(i)
	}
	return l
}

// addresses is the list of an interface's addresses of one family.
func addresses(family func(netip.Addr) bool) level[Address] {
	return level[Address]{
		each: func(d *Device, yield func([]string, *Address) bool) bool {
			return eachInterface(d, func(i *Interface) bool {
				for n := range i.Addresses {
					a := &i.Addresses[n]
					if family(a.Addr()) && !yield([]string{i.Name, strconv.FormatUint(uint64(a.Subinterface), 10), a.Addr().String()}, a) {
						return false
					}
				}
				return true
			})
		},
		find: func(d *Device, keys []string, create bool) (*Address, error) {
			sub, err := parseUint(keys[1], 32)
			if err != nil {
				return nil, fmt.Errorf("the index of the subinterface is no number: %q", keys[1])
			}
			ip, err := netip.ParseAddr(keys[2])
			if err != nil || ip.Zone() != "" || !family(ip) {
				return nil, fmt.Errorf("no address of this family: %q", keys[2])
			}
			i := d.named(keys[0], create)
			if i == nil {
				return nil, nil
			}
			for n := range i.Addresses {
				if a := &i.Addresses[n]; a.Addr() == ip && a.Subinterface == uint32(sub) {
					return a, nil
				}
			}
			if !create {
				return nil, nil
			}
			i.Addresses = append(i.Addresses, Address{netip.PrefixFrom(ip, ip.BitLen()), uint32(sub)})
			return &i.Addresses[len(i.Addresses)-1], nil
		},
		drop: func(d *Device, keys []string) {
			i := d.Interfaces[keys[0]]
			i.Addresses = compact(i.Addresses, func(a Address) bool { return !a.Prefix.Addr().IsValid() })
			d.drop(keys[0])
		},
	}
}

// compact returns a list without some elements, nil if none is left.
func compact[T any](list []T, gone func(T) bool) []T {
	if list = slices.DeleteFunc(list, gone); len(list) == 0 {
		return nil
	}
	return list
}

func addressLeaves(at string, most int) []leaf[Address] {
	ip := key(at+"/ip", func(a *Address) string { return a.Addr().String() })
	ip.set = func(a *Address, v Value) {
		if v.kind == None {
			*a = Address{} // gone
		}
	}
	return []leaf[Address]{ip, {
		path: at + "/prefix-length", Leaf: Leaf{Kind: Uint, Bits: 8},
		get: func(a *Address) Value { return Number(uint64(a.Bits())) },
		set: func(a *Address, v Value) {
			bits := most
			if v.kind != None {
				bits = int(v.Number())
			}
			a.Prefix = netip.PrefixFrom(a.Addr(), bits)
		},
		check: func(_ []string, v Value) error {
			if v.Number() > uint64(most) {
				return fmt.Errorf("wants a prefix length up to %d, not %d", most, v.Number())
			}
			return nil
		},
	}}
}
