package attribute

import (
	"errors"
	"fmt"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/attributes"
)

// ErrConfig is wrapped by all errors of Config.Validate.
var ErrConfig = errors.New("attribute: invalid configuration")

// Config is what a member's part in the replication is reported once.
type Config struct {
	Self attributes.Life // whose map may be written here; not 0

	// Period is the mean time between two digests to the neighbours, at least.
	// After a quiet time Burst of them, 1 or more, may go at once.
	Period time.Duration
	Burst  int

	// MessageBytes bounds a message, as its Append writes it, from
	// MinMessageBytes.
	MessageBytes int

	// PendingOffers bounds how many lives outside of the view are remembered, and Memory
	// for how long, because something about their maps was, or may have been,
	// missed. Who joins after more than PendingOffers have been forgotten within Memory is
	// asked about from all neighbours.
	PendingOffers int
	Memory        time.Duration
}

// MinMessageBytes is the least Config.MessageBytes: a whole map, and what is
// around it.
const MinMessageBytes = attributes.MaxMap + 64

// DefaultConfig returns the configuration of the paper's zone, with messages of
// at most 64 KiB.
func DefaultConfig(self attributes.Life) Config {
	return Config{Self: self, Period: 200 * time.Millisecond, Burst: 4, MessageBytes: 60 << 10, PendingOffers: 8192, Memory: 10 * time.Minute}
}

// Validate reports what is wrong with c; the error wraps ErrConfig.
func (c Config) Validate() error {
	switch {
	case c.Self == 0:
		return fmt.Errorf("%w: no life of its own", ErrConfig)
	case c.Period <= 0:
		return fmt.Errorf("%w: a period of %v, want more than 0", ErrConfig, c.Period)
	case c.Burst < 1:
		return fmt.Errorf("%w: bursts of %d, want at least 1", ErrConfig, c.Burst)
	case c.MessageBytes < MinMessageBytes:
		return fmt.Errorf("%w: messages of %d bytes, want at least %d", ErrConfig, c.MessageBytes, MinMessageBytes)
	case c.PendingOffers < 1 || c.Memory <= 0:
		return fmt.Errorf("%w: %d pending offers remembered for %v, want at least 1 and more than 0", ErrConfig, c.PendingOffers, c.Memory)
	}
	return nil
}
