package rail

import (
	"errors"
	"fmt"
	"time"
)

// Class is a class of connections. Each pair of rails has one path in each.
type Class uint8

// The classes: envelopes and control messages, whose bodies the transport copies, and data,
// whose bodies are lent to it.
const (
	Message Class = iota
	Fragment
	classes
)

// String returns the name of the class.
func (c Class) String() string { return [...]string{"message", "fragment"}[c] }

// EagerBytes is the most that Config.Eager may be, and its default.
const EagerBytes = 64 << 10

// Config is how a Peer is made. Zero fields have defaults, which New fills in.
type Config struct {
	// Eager is the size in bytes up to which a message goes in one MATCH. Default EagerBytes.
	Eager int
	// Fragment is the size in bytes of the body of a FRAG, WRITE or DATA. Default 256 KiB.
	Fragment int
	// PutFrom is the size from which a receiver lets the sender write (RNDV, PUT), GetFrom
	// that from which a sender lets the receiver read (RGET). 0: never.
	PutFrom, GetFrom int
	// MaxUnexpected and MaxHeads bound what the other side may have sent that no receive
	// has matched: bytes of MATCH, and envelopes; of messages that go First a quarter more of
	// these, or see RecvRequest. Default 4 MiB, 4096.
	MaxUnexpected, MaxHeads int
	// SharedPaths: both sides give a connection the same number and incarnation. Then they
	// report the end of one to each other. Otherwise that is the driver's.
	SharedPaths bool
	// KickAfter, of SharedPaths, is how long a path may have fragments outstanding, none of which completes,
	// before the other side is asked to take in what lies there. 0: never.
	KickAfter time.Duration
	// FirstSequence is the first sequence number of both directions.
	FirstSequence uint32
	// Seed makes the keys of requests, which the other side cannot guess.
	Seed uint64
	// Accepts reports whether messages of a context are kept until a receive awaits them;
	// others are discarded. Nil: of all.
	Accepts func(context uint64) bool
	// Regions is the memory that the other side may read and write. Nil: none.
	Regions Regions
}

// ErrConfig is wrapped by the errors of Config.Validate.
var ErrConfig = errors.New("rail: invalid configuration")

const (
	maxFragment = 1 << 20
	maxHeads    = 1 << 20
)

// Validate reports a field out of range.
func (c Config) Validate() error {
	for _, f := range []struct {
		name       string
		value, max int
	}{
		{"Eager", c.Eager, EagerBytes}, {"Fragment", c.Fragment, maxFragment}, {"PutFrom", c.PutFrom, 1 << 62},
		{"GetFrom", c.GetFrom, 1 << 62}, {"MaxUnexpected", c.MaxUnexpected, 1 << 40}, {"MaxHeads", c.MaxHeads, maxHeads},
		{"KickAfter", int(c.KickAfter), 1 << 62},
	} {
		if f.value < 0 || f.value > f.max {
			return fmt.Errorf("%w: %s is %d, not from 0 to %d", ErrConfig, f.name, f.value, f.max)
		}
	}
	return nil
}

// filled returns c with defaults.
func (c Config) filled() Config {
	set := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	set(&c.Eager, EagerBytes)
	set(&c.Fragment, 256<<10)
	set(&c.MaxUnexpected, 4<<20)
	set(&c.MaxHeads, 4096)
	return c
}
