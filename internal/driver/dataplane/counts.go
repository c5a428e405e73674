package dataplane

import (
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// Count adds what an aggregate core has counted to c, by the names that rpc
// publishes.
func Count(c *rpc.TreeCounters, n *switchreduce.Counters) {
	for name, count := range map[string]uint64{
		"taken": n.Taken, "partials": n.Partials, "resent": n.Resent, "results": n.Results, "errors": n.Errors,
		"probes": n.Probes, "repeated": n.Repeated, "wants": n.Wants, "heards": n.Heards, "losts": n.Losts,
		"relayed": n.Relayed, "idle": n.Idle, "kept": n.Kept, "expired": n.Expired,
	} {
		AddEvent(c, name, count)
	}
	for reason, count := range n.Drops {
		AddDrop(c, switchreduce.Drop(reason).String(), count)
	}
	for fault, count := range n.Faults {
		AddDrop(c, "fault-"+wire.Fault(fault).String(), count)
	}
}

// AddEvent adds to the count of an event, which it makes if need be.
func AddEvent(c *rpc.TreeCounters, name string, n uint64) {
	if c.Events == nil {
		c.Events = map[string]uint64{}
	}
	c.Events[name] += n
}

// AddDrop adds to the count of a reason. A reason of which nothing is counted
// is not made.
func AddDrop(c *rpc.TreeCounters, reason string, n uint64) {
	if n == 0 {
		return
	}
	if c.Drops == nil {
		c.Drops = map[string]uint64{}
	}
	c.Drops[reason] += n
}

// Add adds all that n counts to c.
func Add(c *rpc.TreeCounters, n *rpc.TreeCounters) {
	c.PacketsIn += n.PacketsIn
	c.BytesIn += n.BytesIn
	c.PacketsOut += n.PacketsOut
	c.BytesOut += n.BytesOut
	c.Refused += n.Refused
	c.Overflowed += n.Overflowed
	for name, count := range n.Events {
		AddEvent(c, name, count)
	}
	for reason, count := range n.Drops {
		AddDrop(c, reason, count)
	}
}
