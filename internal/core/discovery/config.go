package discovery

import (
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

func (c Config) filled() Config {
	for _, d := range []struct {
		to   *time.Duration
		fill time.Duration
	}{
		{&c.Batch, DefaultBatch}, {&c.Settle, DefaultSettle}, {&c.Confirm, DefaultConfirm}, {&c.Forget, DefaultForget},
		{&c.Hold, DefaultHold}, {&c.MaxHold, DefaultMaxHold},
	} {
		if *d.to == 0 {
			*d.to = d.fill
		}
	}
	for _, n := range []struct {
		to   *int
		fill int
	}{
		{&c.Flaps, DefaultFlaps}, {&c.DialRate, DefaultDialRate}, {&c.MaxTargets, DefaultMaxTargets},
		{&c.MaxPorts, DefaultMaxPorts}, {&c.MaxNeighbors, DefaultMaxNeighbors},
	} {
		if *n.to == 0 {
			*n.to = n.fill
		}
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
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"batch", c.Batch}, {"settle", c.Settle}, {"confirm", c.Confirm}, {"forget", c.Forget},
		{"hold", c.Hold}, {"max-hold", c.MaxHold},
	} {
		if d.value < 0 {
			return fmt.Errorf("%w: %s is negative: %v", ErrConfig, d.name, d.value)
		}
	}
	for _, n := range []struct {
		name  string
		value int
	}{
		{"flaps", c.Flaps}, {"dial-rate", c.DialRate}, {"targets", c.MaxTargets}, {"ports", c.MaxPorts}, {"neighbours", c.MaxNeighbors},
	} {
		if n.value < 0 {
			return fmt.Errorf("%w: %s is negative: %d", ErrConfig, n.name, n.value)
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
