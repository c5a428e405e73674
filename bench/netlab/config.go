package netlab

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"strconv"
	"time"
)

// Errors of a lab. They are wrapped; use errors.Is.
var (
	// ErrConfig: there is no lab of that configuration.
	ErrConfig = errors.New("netlab: invalid configuration")
	// ErrPrivilege: only root can make namespaces, on Linux.
	ErrPrivilege = errors.New("netlab: network namespaces take root")
	// ErrInUse: another process has a lab of that prefix.
	ErrInUse = errors.New("netlab: the prefix is in use")
	// ErrUnknown: the lab has no such node or link.
	ErrUnknown = errors.New("netlab: no such node or link")
	// ErrClosed: the lab was closed.
	ErrClosed = errors.New("netlab: the lab is closed")
)

// Bounds of a lab, by what its address plan and one machine can hold.
const (
	MaxHostsPerLeaf = 64
	MaxLeaves       = 64
	MaxSpines       = 64
	MaxRate         = 100_000_000_000 // bit/s
)

// mtu is that of every link.
const mtu = 1500

// Config says what lab to build.
type Config struct {
	// Prefix begins the names of all namespaces: NAME becomes PREFIX-NAME. It
	// is made of 1 to 16 small letters, digits and hyphens.
	Prefix string

	HostsPerLeaf, Leaves, Spines int

	// HostRails is how many leaves each host has a link to: the leaves are in pods of so
	// many, with HostsPerLeaf hosts each; 0: one. It divides Leaves.
	HostRails int

	// Rate is the bit/s of every link in each direction, Ethernet headers
	// included; 0 leaves the links as fast as the machine is.
	Rate int64

	// TrunkRate is that of the links between switches, where it is another one; 0:
	// it is not.
	TrunkRate int64

	Log *slog.Logger // nil: none
}

var prefixPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,15}$`)

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	switch {
	case !prefixPattern.MatchString(c.Prefix):
		return fmt.Errorf("%w: prefix %q is not made of 1 to 16 small letters, digits and hyphens", ErrConfig, c.Prefix)
	case c.HostsPerLeaf < 1 || c.HostsPerLeaf > MaxHostsPerLeaf, c.Leaves < 1 || c.Leaves > MaxLeaves, c.Spines < 0 || c.Spines > MaxSpines:
		return fmt.Errorf("%w: %d hosts a leaf, %d leaves, %d spines; the most are %d, %d, %d", ErrConfig,
			c.HostsPerLeaf, c.Leaves, c.Spines, MaxHostsPerLeaf, MaxLeaves, MaxSpines)
	case c.HostRails < 0 || c.HostRails > MaxRails || c.Leaves%c.rails() != 0:
		return fmt.Errorf("%w: %d links of a host to %d leaves, want at most %d that divide these", ErrConfig, c.HostRails, c.Leaves, MaxRails)
	case c.Spines == 0 && c.Leaves > c.rails():
		return fmt.Errorf("%w: %d leaves without a spine to join them", ErrConfig, c.Leaves)
	case c.Rate < 0 || c.Rate > MaxRate:
		return fmt.Errorf("%w: a rate of %d bit/s, the most is %d", ErrConfig, c.Rate, int64(MaxRate))
	case c.TrunkRate < 0 || c.TrunkRate > MaxRate:
		return fmt.Errorf("%w: a rate of %d bit/s between switches, the most is %d", ErrConfig, c.TrunkRate, int64(MaxRate))
	}
	return nil
}

// rails returns how many links a host has.
func (c Config) rails() int { return max(1, c.HostRails) }

// rate returns the bit/s of a link, 0 if it is as fast as the machine is.
func (c Config) rate(isTrunk bool) int64 {
	if isTrunk && c.TrunkRate > 0 {
		return c.TrunkRate
	}
	return c.Rate
}

// The token bucket of a shaped link.
const (
	minBurst   = 64 << 10               // bytes
	burstTime  = 500 * time.Microsecond // or what passes in this time, if that is more
	queueDelay = 50 * time.Millisecond  // what a packet waits at most
)

// bucket returns the bytes that a link of so many bit/s sends at once, and
// those that wait at most.
func bucket(rate int64) (burst, limit uint32) {
	second := float64(rate) / 8
	burst = uint32(max(minBurst, second*burstTime.Seconds()))
	return burst, uint32(min(math.MaxUint32, second*queueDelay.Seconds()+float64(burst)))
}

var ratePattern = regexp.MustCompile(`^([0-9]{1,12}(?:\.[0-9]{1,6})?)(k|m|g)?bit$`)

// ParseRate reads a rate as tc does, such as 200mbit or 2.5gbit (powers of
// 1000), and "" or "unshaped" as 0.
func ParseRate(s string) (bits int64, err error) {
	if s == "" || s == "unshaped" {
		return 0, nil
	}
	m := ratePattern.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("%w: rate %q is not like 200mbit or 2.5gbit", ErrConfig, s)
	}
	x, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, fmt.Errorf("%w: rate %q: %w", ErrConfig, s, err)
	}
	x = math.Round(x * map[string]float64{"": 1, "k": 1e3, "m": 1e6, "g": 1e9}[m[2]])
	if x < 1000 || x > MaxRate {
		return 0, fmt.Errorf("%w: rate %q is not within 1kbit and %dbit", ErrConfig, s, int64(MaxRate))
	}
	return int64(x), nil
}
