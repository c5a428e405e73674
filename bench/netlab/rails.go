package netlab

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
)

// Bounds of a rails fabric.
const (
	MaxRails     = 8
	MaxRailHosts = 64
)

// RailsConfig is the configuration of a fabric whose hosts have several rails. Each
// rail is a network of its own: a bridge that joins the hosts, and one IPv4 subnet.
type RailsConfig struct {
	Prefix string // as in Config
	Hosts  int
	// Rates are the bit/s of the links of each rail in each direction, Ethernet
	// headers included; 0 leaves them as fast as the machine is.
	Rates []int64
	// Pin has each host's processes run on cores of their own, as far as there are enough.
	Pin bool
	Log *slog.Logger // nil: none
}

// Validate reports what is wrong with c.
func (c RailsConfig) Validate() error {
	switch {
	case !prefixPattern.MatchString(c.Prefix):
		return fmt.Errorf("%w: prefix %q is not made of 1 to 16 small letters, digits and hyphens", ErrConfig, c.Prefix)
	case c.Hosts < 2 || c.Hosts > MaxRailHosts:
		return fmt.Errorf("%w: %d hosts, want 2 to %d", ErrConfig, c.Hosts, MaxRailHosts)
	case len(c.Rates) < 1 || len(c.Rates) > MaxRails:
		return fmt.Errorf("%w: %d rails, want 1 to %d", ErrConfig, len(c.Rates), MaxRails)
	}
	for _, rate := range c.Rates {
		if rate < 0 || rate > MaxRate {
			return fmt.Errorf("%w: a rate of %d bit/s, the most is %d", ErrConfig, rate, int64(MaxRate))
		}
	}
	return nil
}

// ParseRates reads the rates of rails, such as 200mbit,100mbit.
func ParseRates(text string) (all []int64, err error) {
	for word := range strings.SplitSeq(text, ",") {
		rate, err := ParseRate(strings.TrimSpace(word))
		if err != nil {
			return nil, err
		}
		all = append(all, rate)
	}
	return all, nil
}

// railNet begins the subnets of rails: 10.110.RAIL.(HOST+1), of RailBits.
const railNet = 110

// shareOf returns which of n cores are a host's, of so many.
func shareOf(n, host, hosts int) (first, end int) {
	if n < hosts {
		return host % n, host%n + 1
	}
	return host * n / hosts, (host + 1) * n / hosts
}

// RailBits is the length of a rail's prefix.
const RailBits = 24

func railAddress(host, rail int) netip.Prefix {
	return netip.PrefixFrom(address(railNet, rail, host+1), RailBits)
}

// RailInterface returns the name of the interface at a host's rail.
func RailInterface(rail int) string { return "rail" + strconv.Itoa(rail) }

// RailHost returns the name of a host.
func RailHost(host int) string { return "h" + strconv.Itoa(host) }

// Fault is what is wrong with a host's link to a rail.
type Fault uint8

// Faults. The host sees its own carrier except where Carrier or Disabled says otherwise.
const (
	Works    Fault = iota // nothing is wrong
	Silent                // nothing passes in either direction
	Carrier               // the far end is down: nothing passes, and the host loses its carrier
	Disabled              // the host's own interface is down
	Deleted               // the host's interface is gone, and with it its address
	Out                   // nothing that the host sends arrives
	In                    // nothing that others send to the host arrives
)

var faultNames = [...]string{"up", "down", "unplug", "disable", "delete", "out", "in"}

// String returns the word for f in schedules.
func (f Fault) String() string { return faultNames[f] }

// ParseFault reads the word for a fault.
func ParseFault(word string) (Fault, error) {
	for f, name := range faultNames {
		if word == name {
			return Fault(f), nil
		}
	}
	return 0, fmt.Errorf("%w: fault %q, want one of %s", ErrConfig, word, strings.Join(faultNames[:], ", "))
}

// railLink is the state of a host's link to a rail.
type railLink struct {
	rate                 int64
	fault                Fault
	isMade               bool  // its interfaces exist
	oldSent, oldReceived Count // by interfaces that were deleted
}

// sends reports whether what the host sends arrives, and receives whether what others
// send to it does.
func (l railLink) sends() bool    { return l.fault != Silent && l.fault != Out }
func (l railLink) receives() bool { return l.fault != Silent && l.fault != In }
