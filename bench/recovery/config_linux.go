package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/bench/field"
)

// Config says what is measured, and where.
type Config struct {
	Field       field.Config
	Rounds      int
	Limit       time.Duration // of one request
	Dead        []int         // ranks to kill; negative: from the last one
	Collectives []string
	Bytes       []int
	Way         string // of the communicators of plans
}

// Validate reports what is wrong with c.
func (c *Config) Validate() error {
	if c.Rounds < 1 || c.Limit <= 0 {
		return fmt.Errorf("%w: %d rounds, a limit of %v", ErrConfig, c.Rounds, c.Limit)
	}
	if _, known := Ways[c.Way]; !known {
		return fmt.Errorf("%w: no way %q", ErrConfig, c.Way)
	}
	for _, b := range c.Bytes {
		if b < 8 || b%8 != 0 {
			return fmt.Errorf("%w: %d bytes, want a multiple of 8", ErrConfig, b)
		}
	}
	for _, name := range c.Collectives {
		if !slices.Contains([]string{allreduce, broadcast, barrier}, name) {
			return fmt.Errorf("%w: no collective %q", ErrConfig, name)
		}
	}
	ranks, least := max(1, c.Field.Processes)*c.Field.Lab.HostsPerLeaf*c.Field.Lab.Leaves, 2
	if len(c.Dead) > 0 {
		least = 3 // one alone has no switches
	}
	if ranks < least {
		return fmt.Errorf("%w: %d members, want at least %d", ErrConfig, ranks, least)
	}
	for _, rank := range c.Dead {
		if rank < -ranks || rank >= ranks {
			return fmt.Errorf("%w: rank %d of %d", ErrConfig, rank, ranks)
		}
	}
	return nil
}

// with has do done with members on a fabric, whose processes have more arguments.
func (c *Config) with(ctx context.Context, args []string, do func(*crew) error) (err error) {
	if err := c.Validate(); err != nil {
		return err
	}
	f, err := field.Start(c.Field)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	members, err := hire(ctx, f, c.Limit, args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, members.close()) }()
	return do(members)
}
