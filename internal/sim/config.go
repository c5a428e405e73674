package sim

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// ErrConfig is wrapped by all errors of Config.Validate and Link.Validate.
var ErrConfig = errors.New("sim: invalid configuration")

// Link reports what happens to what one node sends to another. The zero Link
// delivers everything at once, in order.
type Link struct {
	Delay  time.Duration // of everything
	Jitter time.Duration // largest further delay, drawn for each datagram, message or value

	// Probabilities, from 0 to 1, for each datagram.
	Loss      float64 // it does not arrive
	Duplicate float64 // a copy arrives, too, up to Stray later
	Reorder   float64 // it is late by up to Stray

	Stray time.Duration // largest further delay of copies and of reordered datagrams
}

// Validate reports what is wrong with l.
func (l Link) Validate() error {
	if l.Delay < 0 || l.Jitter < 0 || l.Stray < 0 {
		return fmt.Errorf("%w: a negative delay in %+v", ErrConfig, l)
	}
	for _, p := range []float64{l.Loss, l.Duplicate, l.Reorder} {
		if !(p >= 0 && p <= 1) {
			return fmt.Errorf("%w: a probability of %v in %+v, want 0 to 1", ErrConfig, p, l)
		}
	}
	return nil
}

// Config is what a world is made of. The zero Config is usable: all arrives at
// once.
type Config struct {
	Seed uint64
	Link Link // between any two nodes, unless World.SetLink says otherwise

	// Service is the longest time from an arrival at an idle node to the step
	// that takes it, with what else has come by then. 0: a step for each.
	Service time.Duration

	Reconnect time.Duration // longest time until a broken connection is there again
	Death     time.Duration // time from a crash until connected nodes are notified
	Patience  time.Duration // longest that a cut connection is waited for; 0: for ever

	Budget uint64    // events that a run may take; 0: DefaultBudget
	Keep   int       // lines of the trace that a Failure shows; 0: DefaultKeep
	Trace  io.Writer // takes every line of the trace; nil: none. Its errors are ignored
	Poison bool      // overwrite buffers that were lent to a step after it

	// Describe returns what a line of the trace says of the first DescribeBytes
	// bytes of a datagram or message; nil: nothing.
	Describe func(head []byte) string
}

// Defaults and bounds of Config.
const (
	DefaultBudget = 50_000_000
	DefaultKeep   = 100
	DescribeBytes = 48
)

// DefaultConfig returns the world of a small data centre on a fair day: some
// microseconds from node to node, nothing lost.
func DefaultConfig(seed uint64) Config {
	return Config{
		Seed:      seed,
		Link:      Link{Delay: 2 * time.Microsecond, Jitter: time.Microsecond, Stray: 100 * time.Microsecond},
		Reconnect: 20 * time.Millisecond,
		Death:     100 * time.Millisecond,
		Patience:  5 * time.Second,
	}
}

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	if c.Service < 0 || c.Reconnect < 0 || c.Death < 0 || c.Patience < 0 {
		return fmt.Errorf("%w: a negative duration", ErrConfig)
	}
	if c.Keep < 0 {
		return fmt.Errorf("%w: %d lines to keep", ErrConfig, c.Keep)
	}
	return c.Link.Validate()
}
