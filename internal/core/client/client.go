package client

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/topology"
)

// ErrConfig is wrapped by the errors of Config.Validate.
var ErrConfig = errors.New("client: invalid configuration")

// Config is how a client retries.
type Config struct {
	RetryMin time.Duration // pause after the first failure; it doubles
	RetryMax time.Duration // longest pause, before its jitter of a quarter up or down
	Release  time.Duration // longest wait for the manager's answer to a Release
	Seed     uint64        // of the jitter: hosts should differ; 0: no jitter
}

// DefaultConfig returns the configuration of a host.
func DefaultConfig() Config {
	return Config{RetryMin: 50 * time.Millisecond, RetryMax: 5 * time.Second, Release: 2 * time.Second}
}

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	if c.RetryMin <= 0 || c.RetryMax < c.RetryMin || c.Release <= 0 {
		return fmt.Errorf("%w: retries after %v to %v, release within %v", ErrConfig, c.RetryMin, c.RetryMax, c.Release)
	}
	return nil
}

// Kind is the kind of an Input.
type Kind uint8

// The kinds of inputs, with the fields that they use.
const (
	Join   Kind = iota + 1 // Member, Joined: a communicator begins
	Number                 // Member, Group: the group's number is known; 0: there is no group
	News                   // Member, Report: what changed; Group and Rank are ignored
	Leave                  // Member, Over: the communicator has ended
	Up                     // Speed: the connection is there
	Down                   // Err: it is not, or no more; Final: calling again cannot help
	Said                   // Event: the manager has said so
	Rails                  // Rails, OnlyRails: the host has these, or has heard anew of one
)

// Input is one input.
type Input struct {
	Kind   Kind
	Member uint64 // the driver's name of a member; never 0, never reused
	Joined *Joined
	Group  uint32
	Report manager.Report
	Over   bool // nobody works in the communicator any more, as it is revoked: its group is to go at once
	Err    error
	Final  bool
	Event  manager.Event
	Speed  topology.Speed // at which the host reduces, for its watches

	Rails     []manager.Rail // of the host, for its watches; kept, read only
	OnlyRails bool           // as in a Watch
}

// Joined is what a member is.
type Joined struct {
	Rank   uint32
	Of     string         // what the group's name begins with
	Data   netip.AddrPort // from which its packets come
	Report manager.Report // what it says of itself at first
	// Create is the group that the lowest rank asks for; nil at the others. Req is
	// ignored.
	Create *manager.Create
}

// Output is what a Step wants done. The lists keep their order.
type Output struct {
	Dial     bool            // connect to the manager; Up or Down follows
	Messages []manager.Input // to the manager: Create, Watch, Unwatch, Report, Release
	Notify   []Notify
	Gone     []Gone
}

// Reset empties o and keeps its memory.
func (o *Output) Reset() {
	clear(o.Messages)
	clear(o.Notify)
	clear(o.Gone)
	*o = Output{Messages: o.Messages[:0], Notify: o.Notify[:0], Gone: o.Gone[:0]}
}

// Notify is what a member hears: one of Offer, Withdrawal, Links, Group and Err.
type Notify struct {
	Member     uint64
	Offer      *manager.Offer
	Withdrawal *manager.Withdrawal
	Links      *manager.Links // the lowest rank alone
	Group      uint32         // number of the group, which the lowest rank sends to all others
	Err        error          // why there is no tree for now
	All        bool           // the lowest rank reports Err to all others
}

// Gone reports that a member has left.
type Gone struct {
	Member uint64
	Err    error // why the manager could not be asked to release the group; nil: it was, or need not be
}

// lasting are the manager's errors after which the same request cannot succeed.
var lasting = []error{
	manager.ErrRequest, manager.ErrTooFew, manager.ErrTooMany, manager.ErrDuplicate, manager.ErrUnknownHost,
	manager.ErrUnknownRank, manager.ErrBundle, manager.ErrExists, manager.ErrReleased,
}

// IsLasting reports whether, after an error of the manager's, the same request
// cannot succeed later.
func IsLasting(err error) bool {
	return slices.ContainsFunc(lasting, func(e error) bool { return errors.Is(err, e) })
}
