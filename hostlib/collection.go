package hostlib

import (
	"context"
	"errors"
	"fmt"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
)

// ErrNoTree reports that the manager has no tree of switches for a group.
var ErrNoTree = errors.New("hostlib: the group has no tree of switches")

// CollectionTree is the tree of switches that a communicator was given, by name.
// Programs that pass messages from host to host can follow it: tree.AlongSwitches.
type CollectionTree struct {
	Epoch    uint32
	Switches []CollectionSwitch // parents before their children; the first is the root
	Leaf     []int              // by rank: the switch of the member's host
}

// CollectionSwitch is a switch of a CollectionTree.
type CollectionSwitch struct {
	Name   string
	Parent int // index among the switches; -1: the root
}

// CollectionTree asks the manager for the tree that is active, the first of
// several. It fails with ErrNoTree where there is none, and why.
func (c *Communicator) CollectionTree(ctx context.Context) (CollectionTree, error) {
	number := c.number.Load()
	if c.manager == nil || number == 0 {
		_, why := c.ownTransport()
		return CollectionTree{}, fmt.Errorf("%w: %s", ErrNoTree, why)
	}
	e, err := c.manager.Explain(ctx, rpc.GroupRef{Group: number})
	if err != nil {
		return CollectionTree{}, fmt.Errorf("hostlib: the tree of %q: %w", c.name, err)
	}
	for i := range e.Trees {
		if t := &e.Trees[i]; t.Stage == manager.TreeActive && t.Epoch == e.Epoch {
			return collectionTree(t), nil
		}
	}
	if e.Refusal != nil {
		return CollectionTree{}, fmt.Errorf("%w: %w", ErrNoTree, e.Refusal)
	}
	return CollectionTree{}, fmt.Errorf("%w: it is %s", ErrNoTree, e.State)
}

func collectionTree(t *rpc.TreeState) CollectionTree {
	c := CollectionTree{Epoch: t.Epoch}
	for _, v := range t.Switches {
		c.Switches = append(c.Switches, CollectionSwitch{v.Switch, v.Parent})
	}
	for _, m := range t.Members {
		c.Leaf = append(c.Leaf, m.Vertex)
	}
	return c
}
