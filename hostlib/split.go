package hostlib

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Undefined is the color of a member that becomes a member of no new communicator.
const Undefined = -1

// Split makes communicators of the members of this one: those that give the same color, which is
// not negative, in the order of their keys, and of their ranks where these are equal. It is
// collective. With Undefined it returns nil. Options are those of Host.Communicator, and are
// alike within a color. If ctx ends before the new communicator is formed, the error wraps
// ErrFormation, or is an *UnfinishedError if it ends before all members have called Split. If this
// communicator ends before that, the error says why; members that have the new one already find
// that it ends.
func (c *Communicator) Split(ctx context.Context, color, key int, options ...GroupOption) (*Communicator, error) {
	if color < Undefined {
		return nil, fmt.Errorf("%w: color %d, want at least 0, or Undefined", ErrArgument, color)
	}
	own, all := []int64{int64(color), int64(key)}, make([]int64, 2*len(c.members))
	name, err := c.successor()
	if err != nil {
		return nil, err
	}
	if _, err := Allgather(ctx, c, own, all); err != nil {
		return nil, err
	}
	if color == Undefined {
		return nil, nil
	}
	var ranks []int
	for rank := range c.members {
		if all[2*rank] == int64(color) {
			ranks = append(ranks, rank)
		}
	}
	slices.SortStableFunc(ranks, func(a, b int) int {
		switch x, y := all[2*a+1], all[2*b+1]; {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	members := make([]Member, len(ranks))
	for i, rank := range ranks {
		members[i] = c.members[rank]
	}
	return c.formSuccessor(ctx, fmt.Sprintf("%s.%d", name, color), members, options...)
}

// Duplicate makes a communicator of the same members, with the same options. It is collective. If
// ctx ends early, errors are those of Split.
func (c *Communicator) Duplicate(ctx context.Context) (*Communicator, error) {
	name, err := c.successor()
	if err != nil {
		return nil, err
	}
	// Members that call something else meanwhile are found as in any operation.
	if _, err := Allgather(ctx, c, []int64{0}, make([]int64, len(c.members))); err != nil {
		return nil, err
	}
	options := c.options
	return c.formSuccessor(ctx, name, c.members, func(t *groupOptions) { *t = options })
}

// formSuccessor forms a communicator of members of this one, unless this one ends first.
func (c *Communicator) formSuccessor(ctx context.Context, name string, members []Member, options ...GroupOption) (*Communicator, error) {
	forming, cancel := c.untilEnd(ctx)
	defer cancel()
	s, err := c.host.Communicator(forming, name, members, options...)
	if errors.Is(err, ErrFormation) && ctx.Err() == nil && c.Err() != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormation, c.Err())
	}
	return s, err
}

// untilEnd returns a context that ends with ctx, or when the communicator has ended. The caller has to
// call the function.
func (c *Communicator) untilEnd(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// successor returns a name for a communicator that is made of this one's members: the same at
// all, who make them in one order.
func (c *Communicator) successor() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return "", c.err
	}
	c.successors++
	return fmt.Sprintf("%s/%d", c.name, c.successors), nil
}
