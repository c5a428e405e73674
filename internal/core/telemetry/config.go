package telemetry

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// Why a stream is refused.
var (
	ErrInvalid = errors.New("invalid subscription")
	ErrLimit   = errors.New("too many subscriptions")
	ErrUnknown = errors.New("path is not served")
)

// Config bounds streams. Fields that are zero have their defaults.
type Config struct {
	Streams       int           // at a time; 0: 256
	Subscriptions int           // of a stream; 0: 512
	All           int           // subscriptions of all streams; 0: 8192
	Batch         int           // entries of a batch; 0: 256
	MinInterval   time.Duration // between samples; 0: 100 ms
	Interval      time.Duration // between samples of counters whose subscription has none; 0: 10 s
}

func (c Config) filled() Config {
	c.Streams = cmp.Or(c.Streams, 256)
	c.Subscriptions = cmp.Or(c.Subscriptions, 512)
	c.All = cmp.Or(c.All, 8192)
	c.Batch = cmp.Or(c.Batch, 256)
	c.MinInterval = cmp.Or(c.MinInterval, 100*time.Millisecond)
	c.Interval = cmp.Or(c.Interval, 10*time.Second)
	return c
}

// check returns why a stream cannot be opened.
func (c *Core) check(o *Open) error {
	switch n := len(o.Subscriptions); {
	case c.streamOf[o.Stream] != nil:
		return fmt.Errorf("%w: stream %d is open", ErrInvalid, o.Stream)
	case len(c.streams) >= c.cfg.Streams:
		return fmt.Errorf("%w: %d streams are open, and no more are allowed; end one", ErrLimit, len(c.streams))
	case n == 0:
		return fmt.Errorf("%w: none in the list", ErrInvalid)
	case n > c.cfg.Subscriptions:
		return fmt.Errorf("%w: %d in one list, and %d are allowed; use wildcards, or several streams", ErrLimit, n, c.cfg.Subscriptions)
	case n+c.subscriptions > c.cfg.All:
		return fmt.Errorf("%w: %d are in use, and %d are allowed; end a stream", ErrLimit, c.subscriptions, c.cfg.All)
	}
	for i := range o.Subscriptions {
		if err := c.checkSubscription(o.Mode, &o.Subscriptions[i]); err != nil {
			return fmt.Errorf("%w: %s", err, o.Subscriptions[i].Path)
		}
	}
	return nil
}

func (c *Core) checkSubscription(m Mode, s *Subscription) error {
	switch {
	case !openconfig.Selects(s.Path):
		return ErrUnknown
	case m != Streaming:
		return nil // the rest means nothing
	case s.Trigger > Sample:
		return fmt.Errorf("%w: there is no such trigger: %d", ErrInvalid, s.Trigger)
	case s.Trigger == TargetDefined && s.Interval != 0:
		return fmt.Errorf("%w: a sample interval, and the target is to choose it", ErrInvalid)
	case s.Trigger == Sample && s.Interval != 0 && s.Interval < c.cfg.MinInterval:
		return fmt.Errorf("%w: a sample interval of %v, and the least is %v", ErrInvalid, s.Interval, c.cfg.MinInterval)
	case s.Heartbeat != 0 && s.Heartbeat < c.cfg.MinInterval:
		return fmt.Errorf("%w: a heartbeat interval of %v, and the least is %v", ErrInvalid, s.Heartbeat, c.cfg.MinInterval)
	}
	return nil
}
