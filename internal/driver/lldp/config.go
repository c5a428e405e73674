package lldp

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/neighbor"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/ground/version"
	"github.com/tributary-fabric/tributary/internal/wire/lldpdu"
	"github.com/tributary-fabric/tributary/topology"
)

var (
	// ErrConfig is wrapped by the errors of an unusable Config.
	ErrConfig = neighbor.ErrConfig

	// ErrPermission: the process may not open raw sockets. Its text says what to grant.
	ErrPermission = errors.New("lldp: raw sockets take the capability CAP_NET_RAW: run as root, or grant it " +
		"(systemd: AmbientCapabilities=CAP_NET_RAW; a file: setcap cap_net_raw+ep)")

	// ErrUnsupported: this system has no raw sockets for Ethernet frames.
	ErrUnsupported = errors.New("lldp: LLDP is sent and heard on Linux only")
)

// Config is what a machine announces, and where.
type Config struct {
	Interfaces nic.Source // their changes are followed; nil: those of the system

	// Own is what all ports announce: system, capabilities, Tributary. Its chassis
	// identifier is chosen where it is empty: the MAC address of the first interface. Its
	// name and description of the system are Tributary's where they are empty. Its
	// management addresses are, where there are none, those of each port's own interface.
	Own lldpdu.Announcement
	// Number returns the number that a port has in the topology; 0: not known. nil: 0 for
	// all.
	Number func(nic.Interface) uint32

	Include []string // patterns of names of interfaces, as path.Match has them; none: cables, virtual ones too
	Exclude []string // and those that are left out all the same

	Interval time.Duration // between two announcements; 0: neighbor.DefaultInterval

	Changed func()       // Neighbors or Latency would return something else; it must not wait. nil: nobody asks
	Log     *slog.Logger // nil: none
}

// OfHost returns what a host announces: its name, and on each link the address of its end.
func OfHost(name string, interfaces nic.Source, log *slog.Logger) Config {
	return Config{
		Interfaces: interfaces, Log: log,
		Own: lldpdu.Announcement{
			Capabilities: lldpdu.Station, Enabled: lldpdu.Station,
			Tributary: lldpdu.Tributary{Role: lldpdu.Host, Name: name},
		},
	}
}

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	for _, p := range slices.Concat(c.Include, c.Exclude) {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return fmt.Errorf("%w: %q is no pattern of interfaces", ErrConfig, p)
		}
	}
	full := c.filled(nil)
	if full.Own.SystemName == "" {
		return fmt.Errorf("%w: the system has no name", ErrConfig)
	}
	if err := topology.CheckName(c.Own.Tributary.Name); c.Own.Tributary.Name != "" && err != nil {
		return fmt.Errorf("%w: the name in the fabric: %w", ErrConfig, err)
	}
	if c.Own.Chassis.Value == "" {
		full.Own.Chassis.Value = "x" // what is chosen fits
	}
	own := full.announcement(nic.Interface{Name: "x"})
	if _, err := own.Append(nil); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return neighbor.Config{Interval: c.Interval}.Validate()
}

// filled returns c with what it leaves out, on a machine with these interfaces.
func (c Config) filled(all []nic.Interface) Config {
	if c.Interfaces == nil {
		c.Interfaces = nic.System()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Own.SystemName == "" {
		c.Own.SystemName = c.Own.Tributary.Name
	}
	if c.Own.SystemDescription == "" {
		c.Own.SystemDescription = "Tributary " + version.String()
	}
	if c.Own.Chassis.Value == "" {
		c.Own.Chassis = chassis(all, c.Own.SystemName)
	}
	return c
}

// chassis returns the identifier of a machine: the MAC address of its first interface, so
// that two machines of one name differ. Without one it is the name.
func chassis(all []nic.Interface, name string) lldpdu.ChassisID {
	var first *nic.Interface
	for i := range all {
		if one := &all[i]; isCable(one) && (first == nil || one.Index < first.Index) {
			first = one
		}
	}
	if first == nil {
		return lldpdu.ChassisID{Subtype: lldpdu.ChassisLocal, Value: name}
	}
	return lldpdu.ChassisID{Subtype: lldpdu.ChassisMAC, Value: string(first.MAC)}
}

// isCable reports whether an interface is one end of a cable, or of a virtual one: others,
// such as bridges and VLANs, are made of those.
func isCable(i *nic.Interface) bool {
	return i.Ethernet && len(i.MAC) == 6 && (i.Kind == "" || i.Kind == "device" || i.Kind == "veth")
}

// takes reports whether an interface takes part.
func (c *Config) takes(i *nic.Interface) bool {
	matches := func(patterns []string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			ok, err := path.Match(p, i.Name)
			return err == nil && ok
		})
	}
	switch {
	case !i.Ethernet || len(i.MAC) != 6 || matches(c.Exclude):
		return false
	case len(c.Include) > 0:
		return matches(c.Include)
	}
	return isCable(i)
}

// announcement returns what a port announces.
func (c *Config) announcement(i nic.Interface) lldpdu.Announcement {
	a := c.Own
	a.Port = lldpdu.PortID{Subtype: lldpdu.PortInterface, Value: i.Name}
	if a.PortDescription = i.Name; i.Alias != "" {
		a.PortDescription = i.Alias[:min(len(i.Alias), lldpdu.MaxText)]
	}
	if len(a.Management) == 0 {
		a.Management = reachable(i.Addresses)
	}
	if c.Number != nil {
		a.Tributary.PortNumber = c.Number(i)
	}
	return a
}

// reachable returns the addresses at which others can call: not those of the link alone,
// which need a name of the caller's interface.
func reachable(all []netip.Addr) (some []netip.Addr) {
	for _, a := range all {
		if !a.IsLinkLocalUnicast() && !a.IsLoopback() && len(some) < lldpdu.MaxManagement {
			some = append(some, a)
		}
	}
	return some
}

// hardware returns a MAC address of 6 bytes.
func hardware(a net.HardwareAddr) [6]byte { return [6]byte(a) }
