package agentd

import (
	"context"
	"iter"

	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
)

// census is what an agent's metrics and telemetry report.
type census struct {
	slots, used int
	draining    bool
	trees       []rpc.TreeCounters // that are open
	sum         rpc.TreeCounters   // since the agent was started; Group and Tree mean nothing
}

// census counts all that there is, and that there was.
func (d *Daemon) census(ctx context.Context) (census, error) {
	var c census
	err := d.loop.Do(ctx, func() {
		c.used, c.slots = d.core.Slots()
		c.draining = d.core.Draining()
	})
	if err != nil {
		return c, d.excuse(err)
	}
	counted, err := d.plane.Census(ctx)
	if err != nil {
		return c, d.excuse(err)
	}
	c.trees = counted.Trees
	dataplane.Add(&c.sum, &counted.Past)
	for i := range counted.Trees {
		dataplane.Add(&c.sum, &counted.Trees[i])
	}
	return c, nil
}

// drops lists the reasons for which packets were dropped.
func drops(t *rpc.TreeCounters) iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for reason, n := range t.Drops {
			if reason != "fault" && !yield(reason, n) { // the sum of those that follow it
				return
			}
		}
	}
}
