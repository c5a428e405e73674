package soft

import (
	"log/slog"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/topology"
)

// Accelerator reduces packets of trees before they come to their sockets, as far as it
// can: the tree's core has the rest, and the same rules. Trees are known by the UDP ports
// of their sockets. It is safe for concurrent use.
type Accelerator interface {
	// Install makes memory for an epoch. An error says why the epoch is the core's alone.
	Install(port uint16, c *switchreduce.Config) (switchreduce.FastPath, error)
	// Begin lets it take packets of an epoch, and none of the tree's other epochs.
	Begin(port uint16, epoch uint32)
	// Retire ends an epoch, if it is there, and gives its memory back: no Step of the
	// tree's core is under way, and none will ask for it.
	Retire(port uint16, epoch uint32)
	// Shut ends a tree, with all its epochs.
	Shut(port uint16)
	// Count adds what it has counted of a tree, and of its epochs that are in epochs.
	Count(port uint16, c *rpc.TreeCounters, epochs []switchreduce.EpochTraffic)
	// Reducer returns what reduces for epochs that Install has made memory for.
	Reducer() topology.Reducer
	// Close ends all trees.
	Close()
}

// accelerate makes the accelerator serve an epoch, if it can, and returns its
// configuration for the core, and what reduces for it.
func (t *tree) accelerate(c *switchreduce.Config) (*switchreduce.Config, topology.Reducer) {
	a := t.plane.cfg.Accelerator
	if a == nil {
		return c, topology.SoftwareReducer()
	}
	fast, err := a.Install(t.port, c)
	if err != nil {
		t.plane.cfg.Log.Info("an epoch is reduced by the agent alone",
			slog.Uint64("group", uint64(c.Group)), slog.Uint64("epoch", uint64(c.Epoch)), slog.Any("reason", err))
		return c, topology.SoftwareReducer()
	}
	with := *c
	with.FastPath = fast
	return &with, a.Reducer()
}
