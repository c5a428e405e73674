package discovery

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// ErrConfig is wrapped by the errors of Config.Validate.
var ErrConfig = errors.New("discovery: invalid configuration")

// Config says where discovery begins, how far it may go, and its times and bounds.
type Config struct {
	Seeds []string       // "host:port" of targets that are dialled in any case
	Allow []netip.Prefix // no address outside is dialled, the seeds aside
	// Port is that of switches that announce none, because no agent of Tributary is on
	// them; 0: such switches are not dialled.
	Port uint16

	Batch   time.Duration // changes are gathered for so long; 0: DefaultBatch
	Settle  time.Duration // a contradiction that lasts so long is an alarm; 0: DefaultSettle
	Confirm time.Duration // so is what nobody confirms for so long; 0: DefaultConfirm
	Forget  time.Duration // what nobody has reported for so long is forgotten; 0: DefaultForget

	Flaps   int           // changes of one link in FlapWindow that are followed at once; 0: DefaultFlaps
	Hold    time.Duration // for the next one a link has to be stable for so long, then twice, and so on; 0: DefaultHold
	MaxHold time.Duration // at most; 0: DefaultMaxHold

	DialRate     int // dials a second; 0: DefaultDialRate
	MaxTargets   int // 0: DefaultMaxTargets
	MaxPorts     int // of one target; 0: DefaultMaxPorts
	MaxNeighbors int // on one port; 0: DefaultMaxNeighbors
}

// The values of a Config's zero fields.
const (
	DefaultBatch        = 100 * time.Millisecond
	DefaultSettle       = 500 * time.Millisecond
	DefaultConfirm      = 10 * time.Second
	DefaultForget       = 24 * time.Hour
	DefaultFlaps        = 6
	DefaultHold         = time.Second
	DefaultMaxHold      = time.Minute
	DefaultDialRate     = 500
	DefaultMaxTargets   = 10_000
	DefaultMaxPorts     = 1024
	DefaultMaxNeighbors = 16
)

// FlapWindow is the time in which changes of a link are counted.
const FlapWindow = time.Minute

// portPause is the time between two dials on behalf of one port: a forger on a port
// takes no more of DialRate.
const portPause = 200 * time.Millisecond

// setting is a field of a Config, as errors name it.
type setting[T any] struct {
	name     string
	value    *T
	standard T
}

func (c *Config) periods() []setting[time.Duration] {
	return []setting[time.Duration]{
		{"batch", &c.Batch, DefaultBatch}, {"settle", &c.Settle, DefaultSettle}, {"confirm", &c.Confirm, DefaultConfirm},
		{"forget", &c.Forget, DefaultForget}, {"hold", &c.Hold, DefaultHold}, {"max-hold", &c.MaxHold, DefaultMaxHold},
	}
}

func (c *Config) bounds() []setting[int] {
	return []setting[int]{
		{"flaps", &c.Flaps, DefaultFlaps}, {"dial-rate", &c.DialRate, DefaultDialRate}, {"targets", &c.MaxTargets, DefaultMaxTargets},
		{"ports", &c.MaxPorts, DefaultMaxPorts}, {"neighbours", &c.MaxNeighbors, DefaultMaxNeighbors},
	}
}

func (c Config) filled() Config {
	for _, p := range c.periods() {
		*p.value = cmp.Or(*p.value, p.standard)
	}
	for _, n := range c.bounds() {
		*n.value = cmp.Or(*n.value, n.standard)
	}
	return c
}

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	for _, p := range c.Allow {
		if !p.IsValid() {
			return fmt.Errorf("%w: an allowed prefix is not valid", ErrConfig)
		}
	}
	for _, p := range c.periods() {
		if *p.value < 0 {
			return fmt.Errorf("%w: %s is negative: %v", ErrConfig, p.name, *p.value)
		}
	}
	for _, n := range c.bounds() {
		if *n.value < 0 {
			return fmt.Errorf("%w: %s is negative: %d", ErrConfig, n.name, *n.value)
		}
	}
	return nil
}

// allows reports whether an address may be dialled.
func (c *Config) allows(a netip.Addr) bool {
	for _, p := range c.Allow {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
