package topology

import (
	"errors"
	"fmt"
	"time"
)

// The link of which nothing else is said.
const (
	DefaultBandwidth = 100_000_000_000 // bit/s
	DefaultLatency   = 500 * time.Nanosecond
)

// maxBandwidth and maxLatency bound a link; what is above them is a typing error.
const (
	maxBandwidth = 1_000_000_000_000_000 // 1 Pbit/s
	maxLatency   = time.Hour
)

// ErrLink is wrapped by every error about a link: its bandwidth, its latency,
// or its ends.
var ErrLink = errors.New("invalid link")

// DefaultLink returns DefaultBandwidth and DefaultLatency.
func DefaultLink() LinkSpec {
	return LinkSpec{Bandwidth: DefaultBandwidth, Latency: DefaultLatency}
}

// Validate reports what is out of range in s: a bandwidth must be above zero, a
// latency not below.
func (s LinkSpec) Validate() error {
	if s.Bandwidth <= 0 || s.Bandwidth > maxBandwidth {
		return fmt.Errorf("bandwidth %d bit/s is not within 1 and %d: %w", s.Bandwidth, int64(maxBandwidth), ErrLink)
	}
	if s.Latency < 0 || s.Latency > maxLatency {
		return fmt.Errorf("latency %v is not within 0 and %v: %w", s.Latency, maxLatency, ErrLink)
	}
	return nil
}

// Equipment is what a generated fabric is made of: the same link and switch
// throughout. Its generators are methods; the functions of the same names use
// DefaultEquipment.
type Equipment struct {
	Link   LinkSpec
	Switch Capability // the zero value: switches that cannot reduce
	Host   Speed      // at which hosts reduce
}

// DefaultEquipment returns DefaultLink and DefaultCapability.
func DefaultEquipment() Equipment {
	return Equipment{Link: DefaultLink(), Switch: DefaultCapability()}
}

// Validate reports what is out of range in e.
func (e Equipment) Validate() error {
	if err := e.Link.Validate(); err != nil {
		return err
	}
	if err := e.Host.Validate(); err != nil {
		return err
	}
	return e.Switch.Validate()
}
