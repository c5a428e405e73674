package agentd

import (
	"context"
	"errors"

	"github.com/tributary-fabric/tributary/internal/rpc"
	"github.com/tributary-fabric/tributary/internal/runner"
)

// totals are the counts of several trees. They never fall while they take in
// what closed trees have counted.
type totals struct {
	sum rpc.TreeCounters // Group and Tree mean nothing
}

func (t *totals) add(c rpc.TreeCounters) {
	t.sum.PacketsIn += c.PacketsIn
	t.sum.BytesIn += c.BytesIn
	t.sum.PacketsOut += c.PacketsOut
	t.sum.BytesOut += c.BytesOut
	t.sum.Refused += c.Refused
	t.sum.Overflowed += c.Overflowed
	addAll(&t.sum.Events, c.Events)
	addAll(&t.sum.Drops, c.Drops)
}

func addAll(to *map[string]uint64, counts map[string]uint64) {
	if *to == nil {
		*to = map[string]uint64{}
	}
	for name, n := range counts {
		(*to)[name] += n
	}
}

// census is what an agent's metrics tell.
type census struct {
	trees, slots, used int
	draining           bool
	totals             totals // since the agent was started
}

// census counts all that there is, and that there was.
func (d *Daemon) census(ctx context.Context) (census, error) {
	var c census
	var trees []*tree
	err := d.loop.Do(ctx, func() { // between two steps: a tree is open or past, never both
		c.used, c.slots = d.core.Slots()
		c.draining = d.core.Draining()
		c.totals.add(d.past.sum)
		for _, t := range d.trees {
			trees = append(trees, t)
		}
	})
	if err != nil {
		return c, d.excuse(err)
	}
	c.trees = len(trees)
	for _, t := range trees {
		counters, err := t.counters(ctx)
		if errors.Is(err, runner.ErrClosed) { // it has ended meanwhile
			<-t.watched
			last := t.core.Counters() // nobody else touches the core any more
			counters, err = t.tell(&last), nil
		}
		if err != nil {
			return c, err
		}
		c.totals.add(counters)
	}
	return c, nil
}
