package agentd

import (
	"context"

	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
)

// census is what an agent's metrics report.
type census struct {
	trees, slots, used int
	draining           bool
	sum                rpc.TreeCounters // since the agent was started; Group and Tree mean nothing
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
	c.trees = len(counted.Trees)
	dataplane.Add(&c.sum, &counted.Past)
	for i := range counted.Trees {
		dataplane.Add(&c.sum, &counted.Trees[i])
	}
	return c, nil
}
