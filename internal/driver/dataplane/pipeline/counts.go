package pipeline

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
	"github.com/tributary-fabric/tributary/internal/driver/p4rt"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/p4"
)

// counts turns the target's counters, which a place keeps from tree to tree,
// into those of trees.
type counts struct {
	outcomes [p4.Trees * p4.Outcomes]uint64 // as they were read last
	discards [p4.Discards]uint64
	trees    [p4.Trees]*rpc.TreeCounters // nil: no tree is open there
	fans     [p4.Trees]fan
	past     rpc.TreeCounters
}

// fan is to how many neighbours the newest epoch of a tree sends.
type fan struct{ children, parents uint64 }

func (c *counts) open(tree int) {
	c.trees[tree] = new(rpc.TreeCounters)
	c.fans[tree] = fan{}
}

// install notes the newest epoch of a tree.
func (c *counts) install(tree int, a *switchreduce.Config) {
	c.fans[tree] = fan{children: uint64(len(a.Children))}
	if a.Parent.IsValid() {
		c.fans[tree].parents = 1
	}
}

// shut ends a tree; more is what its hand-over has counted.
func (c *counts) shut(tree int, more *rpc.TreeCounters) {
	dataplane.Add(&c.past, c.trees[tree])
	dataplane.Add(&c.past, more)
	c.trees[tree] = nil
}

func (c *counts) kept(tree int)    { dataplane.AddEvent(c.trees[tree], "kept", 1) }
func (c *counts) expired(tree int) { dataplane.AddEvent(c.trees[tree], "expired", 1) }

// baseline takes the counters as those of a target that nobody has looked at
// yet.
func (c *counts) baseline(outcomes, discards []uint64) {
	copy(c.outcomes[:], outcomes)
	copy(c.discards[:], discards)
}

// take takes the counters.
func (c *counts) take(outcomes, discards []uint64) {
	for tree := range p4.Trees {
		to := c.trees[tree]
		if to == nil {
			to = &c.past // stray, or counted since the tree was shut
		}
		for o := range p4.Outcome(p4.Outcomes) {
			i := p4.OutcomeIndex(tree, o)
			if n := outcomes[i] - c.outcomes[i]; n > 0 {
				count(to, o, n)
				to.PacketsOut += n * c.fans[tree].sent(o)
			}
		}
	}
	for i, n := range discards {
		dataplane.AddDrop(&c.past, "discard-"+p4.Discard(i).String(), n-c.discards[i])
	}
	c.baseline(outcomes, discards)
}

// eventsOf has what an outcome is by the names of package aggregate's counters.
var eventsOf = map[p4.Outcome][]string{
	p4.Taken:         {"taken"},
	p4.TakenPartial:  {"taken", "partials"},
	p4.TakenResult:   {"taken", "results"},
	p4.TakenNoSource: {"taken", "errors"},
	p4.Disagreed:     {"errors"},
	p4.ToldError:     {"errors"},
	p4.ResultTaken:   {"results"},
	p4.AskedResult:   {"probes", "repeated"},
	p4.AskedError:    {"probes", "repeated"},
	p4.AskedWant:     {"probes", "wants"},
	p4.AskedHeard:    {"probes", "heards"},
	p4.RelayedHeard:  {"probes", "heards", "relayed"},
	p4.AskedLost:     {"probes", "losts"},
	p4.RelayedLost:   {"probes", "losts", "relayed"},
	p4.Idled:         {"idle"},
	p4.IdledOn:       {"idle", "kept"},
	p4.Resent:        {"resent"},
	p4.Looped:        {"looped"},
}

// sent returns how many packets leave for one with an outcome. The target does
// not count them.
func (f fan) sent(o p4.Outcome) uint64 {
	switch o {
	case p4.TakenResult, p4.ResultTaken:
		return f.children
	case p4.TakenNoSource, p4.Disagreed:
		return f.children + f.parents
	case p4.ToldError:
		return f.children + f.parents - min(1, f.children)
	case p4.RelayedHeard, p4.RelayedLost:
		return 2
	case p4.TakenPartial, p4.AskedResult, p4.AskedError, p4.AskedWant, p4.AskedHeard, p4.AskedLost, p4.IdledOn, p4.Resent:
		return 1
	}
	return 0
}

// count adds n packets with an outcome.
func count(to *rpc.TreeCounters, o p4.Outcome, n uint64) {
	if o == p4.Handed { // the hand-over counts what it takes, which a target that dies cannot
		return
	}
	if o != p4.Looped { // that comes again
		to.PacketsIn += n
	}
	for _, name := range eventsOf[o] {
		dataplane.AddEvent(to, name, n)
	}
	switch { // by the numbers that p4/stages/outcomes.p4 promises
	case o.Fault():
		dataplane.AddDrop(to, switchreduce.DropFault.String(), n)
		dataplane.AddDrop(to, "fault-"+wire.Fault(o-16).String(), n)
	case o.Drop():
		dataplane.AddDrop(to, switchreduce.Drop(o).String(), n)
	}
}

// census counts all that there is, and that there was.
func (d *driver) census(ctx context.Context) dataplane.Census {
	var c dataplane.Census
	if d.stage == usable {
		if err := d.count(ctx); err != nil {
			d.plane.cfg.Log.Debug("reading the counters", slog.Any("error", err)) // the session reports if that stays so
		}
		var err error
		if c.Epochs, err = d.exchanges(ctx); err != nil {
			d.plane.cfg.Log.Debug("reading the counters of neighbours", slog.Any("error", err))
		}
	}
	for _, t := range d.ledger.trees {
		n := rpc.TreeCounters{Group: t.group, Events: map[string]uint64{}, Drops: map[string]uint64{}}
		handed := d.plane.hand.counters(t.index)
		dataplane.Add(&n, d.counts.trees[t.index])
		dataplane.Add(&n, &handed)
		c.Trees = append(c.Trees, n)
	}
	slices.SortFunc(c.Trees, func(a, b rpc.TreeCounters) int {
		return cmp.Compare(a.Group, b.Group)
	})
	dataplane.Add(&c.Past, &d.counts.past)
	c.Past.Refused += d.plane.hand.lostPackets()
	c.Past.Overflowed += d.plane.client.Stats().Dropped
	return c
}

// count reads the target's counters.
func (d *driver) count(ctx context.Context) error {
	outcomes, err := d.plane.client.Counter(ctx, p4.CounterOutcomes)
	if err != nil {
		return err
	}
	discards, err := d.plane.client.Counter(ctx, p4.CounterDiscards)
	if err != nil {
		return err
	}
	d.counts.take(packetsOf(outcomes), packetsOf(discards))
	return nil
}

// packetsOf returns how many packets each cell has counted.
func packetsOf(cells []p4rt.Count) []uint64 {
	n := make([]uint64, len(cells))
	for i := range cells {
		n[i] = cells[i].Packets
	}
	return n
}
