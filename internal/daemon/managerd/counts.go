package managerd

import (
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/metrics"
	"github.com/tributary-fabric/tributary/pathsel"
)

// counts are what a manager counts of its work, for its metrics.
type counts struct {
	chosen, refused, spared atomic.Uint64 // plans, by how they ended: with a tree, with none, with hosts being faster
	planning                metrics.Durations
	epochs                  atomic.Uint64 // that were given
	redrawn                 atomic.Uint64 // maps that differ from the one before
	lost                    atomic.Uint64 // connections to agents
	unsaved                 atomic.Uint64 // attempts to store that failed

	last map[uint32]uint32 // the last epoch of every group; owned by the loop

	mu        sync.Mutex
	shortages map[shortage]uint64
}

// shortage is what was refused.
type shortage struct{ by, resource string }

// Who refuses.
const (
	byPlanner = "planner"
	bySwitch  = "switch"
)

func newCounts(records []manager.Record) *counts {
	c := &counts{last: map[uint32]uint32{}, shortages: map[shortage]uint64{}}
	for _, r := range records {
		if r.Kind == manager.TreesRecord && r.Trees != nil {
			c.last[r.Group] = r.Trees.Epoch
		}
	}
	return c
}

// given counts the epochs among what is to be stored: each is, before its use.
func (c *counts) given(records []manager.Record) {
	for _, r := range records {
		switch {
		case r.Kind != manager.TreesRecord:
		case r.Delete:
			delete(c.last, r.Group)
		case r.Trees.Epoch > c.last[r.Group]:
			c.last[r.Group] = r.Trees.Epoch
			c.epochs.Add(1)
		}
	}
}

// planned counts a choice of a tree.
func (c *counts) planned(took time.Duration, err error) {
	c.planning.Observe(took)
	if err == nil {
		c.chosen.Add(1)
		return
	}
	var faster *pathsel.HostsFaster
	if errors.As(err, &faster) {
		c.spared.Add(1)
		return
	}
	c.refused.Add(1)
	var r *pathsel.Refusal
	resource := "other"
	if errors.As(err, &r) {
		resource = r.Resource.String()
	}
	c.short(shortage{byPlanner, resource})
}

// refusal counts what a switch has refused.
func (c *counts) refusal(r *agent.Refusal) { c.short(shortage{bySwitch, r.Cause.String()}) }

func (c *counts) short(s shortage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shortages[s]++
}

func (c *counts) refusals() map[shortage]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.shortages)
}
