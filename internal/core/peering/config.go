package peering

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

// ErrConfig is wrapped by the errors of an unusable Config.
var ErrConfig = errors.New("peering: invalid configuration")

// Config is what a core is given once. Zero fields have the defaults that are named.
type Config struct {
	Name        string // of this host; 1 to greeting.MaxName bytes
	Incarnation uint64 // rises with every start of it
	Certified   bool   // callers prove their names by certificates
	Classes     uint8  // of connections

	Pending         int           // connections that are not authenticated, in all; 256
	PendingOfSource int           // and of one source; 64
	GreetWithin     time.Duration // for a call, and for a caller, to come to an end; 5 s

	RetryMin time.Duration // pause after a failed call, doubled with each that follows; 1 ms
	RetryMax time.Duration // up to that; 100 ms

	PathGreetWithin time.Duration // for the call for a further path of a connection, to come to an end; 1 s
	PathRetryMin    time.Duration // pause before a path that has ended, or failed, is dialled again, doubled; 10 ms
	PathRetryMax    time.Duration // up to that; 200 ms

	KeepAlive time.Duration // a connection on which nothing has come for so long is pinged; a third of DeadAfter
	DeadAfter time.Duration // one on which nothing has come for so long is dead; 5 s
	IdleAfter time.Duration // one that nobody uses or holds is closed; 10 min

	Connections int           // that others have made, in all; 16,384
	Remember    int           // hosts without a connection of which something is known; 4,096
	Forget      time.Duration // what an uncertified host has said of itself, after its last connection; 10 s
}

// filled returns c with its defaults.
func (c Config) filled() Config {
	c.Pending, c.PendingOfSource = cmp.Or(c.Pending, 256), cmp.Or(c.PendingOfSource, 64)
	c.Connections, c.Remember = cmp.Or(c.Connections, 16384), cmp.Or(c.Remember, 4096)
	c.GreetWithin = cmp.Or(c.GreetWithin, 5*time.Second)
	c.RetryMin = cmp.Or(c.RetryMin, time.Millisecond)
	c.RetryMax = cmp.Or(c.RetryMax, max(100*time.Millisecond, c.RetryMin))
	c.PathGreetWithin = cmp.Or(c.PathGreetWithin, min(time.Second, c.GreetWithin))
	c.PathRetryMin = cmp.Or(c.PathRetryMin, 10*time.Millisecond)
	c.PathRetryMax = cmp.Or(c.PathRetryMax, max(200*time.Millisecond, c.PathRetryMin))
	c.DeadAfter = cmp.Or(c.DeadAfter, 5*time.Second)
	c.KeepAlive = cmp.Or(c.KeepAlive, c.DeadAfter/3)
	c.IdleAfter, c.Forget = cmp.Or(c.IdleAfter, 10*time.Minute), cmp.Or(c.Forget, 10*time.Second)
	return c
}

// Validate reports what is wrong with c, zero fields having their defaults.
func (c Config) Validate() error {
	c = c.filled()
	switch {
	case c.Name == "" || len(c.Name) > greeting.MaxName:
		return fmt.Errorf("%w: a host's name of %d bytes, want 1 to %d", ErrConfig, len(c.Name), greeting.MaxName)
	case c.Incarnation == 0:
		return fmt.Errorf("%w: no incarnation", ErrConfig)
	case c.Classes == 0:
		return fmt.Errorf("%w: no classes of connections", ErrConfig)
	}
	for _, limit := range []struct {
		field string
		value int
	}{{"Pending", c.Pending}, {"PendingOfSource", c.PendingOfSource}, {"Connections", c.Connections}, {"Remember", c.Remember}} {
		if limit.value < 1 {
			return fmt.Errorf("%w: %s is %d, want at least 1", ErrConfig, limit.field, limit.value)
		}
	}
	for _, span := range []struct {
		field string
		value time.Duration
	}{
		{"GreetWithin", c.GreetWithin}, {"RetryMin", c.RetryMin}, {"RetryMax", c.RetryMax},
		{"PathGreetWithin", c.PathGreetWithin}, {"PathRetryMin", c.PathRetryMin}, {"PathRetryMax", c.PathRetryMax}, {"DeadAfter", c.DeadAfter},
		{"KeepAlive, a third of DeadAfter by default,", c.KeepAlive}, {"IdleAfter", c.IdleAfter}, {"Forget", c.Forget},
	} {
		if span.value <= 0 {
			return fmt.Errorf("%w: %s is %v, want more than 0", ErrConfig, span.field, span.value)
		}
	}
	if c.RetryMax < c.RetryMin || c.DeadAfter < c.KeepAlive {
		return fmt.Errorf("%w: calls are repeated after %v to %v, connections pinged after %v and dead after %v", ErrConfig, c.RetryMin, c.RetryMax, c.KeepAlive, c.DeadAfter)
	}
	return nil
}
