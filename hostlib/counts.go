package hostlib

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/internal/driver/metrics"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/topology"
)

// transports and collectives are the sizes of tables by Transport and by schedule.Collective.
const (
	transports  = int(Hosts) + 1
	collectives = int(schedule.Collectives)
)

// counts are what a host counts over all its communicators, for its metrics.
type counts struct {
	done      [collectives][transports]atomic.Uint64 // operations
	failed    atomic.Uint64
	served    [topology.Pipelines]atomic.Uint64 // operations, by what reduced on some switch
	durations [transports]metrics.Durations
	entered   [2]atomic.Uint64 // epochs, by whether they are of trees of switches

	mu   sync.Mutex
	live map[*Communicator]struct{}
	past Stats // of communicators that have ended; Epoch means nothing
}

// completed counts an operation that is done.
func (n *counts) completed(c schedule.Collective, o *Outcome) {
	if int(c) >= collectives {
		return
	}
	n.done[c][o.Transport].Add(1)
	n.durations[o.Transport].Observe(o.Elapsed)
	for p, on := range o.servedBy() {
		if on {
			n.served[p].Add(1)
		}
	}
}

// begin takes a communicator in, before its loop's end can be noticed.
func (n *counts) begin(c *Communicator) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.live == nil {
		n.live = map[*Communicator]struct{}{}
	}
	n.live[c] = struct{}{}
}

// end keeps what a communicator whose loop has ended has counted.
func (n *counts) end(c *Communicator) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.live, c)
	n.past.add(c.read())
}

// all returns the communicators that have not ended.
func (n *counts) all() []*Communicator {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Keys(n.live))
}

// total returns the sum over all communicators, and how many there are beside
// those that serve another one.
func (n *counts) total() (Stats, int) {
	n.mu.Lock()
	sum := n.past
	n.mu.Unlock()
	whole := 0
	for _, c := range n.all() {
		if c.sub.of == nil {
			whole++
		}
		sum.add(c.ownStats())
	}
	return sum, whole
}

// read returns the counts. It is for the loop, and for whoever knows that it
// has ended.
func (c *Communicator) read() Stats {
	stats := Stats{Epoch: c.core.Epoch(), Session: SessionCounters(c.core.Counters()), Hosts: c.frames.counters()}
	if c.conn != nil {
		stats.Data = DatagramCounters(c.conn.Counters())
	}
	if c.sealed != nil {
		stats.Session.Discarded += c.sealed.Refused()
	}
	return stats
}

func (s *Stats) add(t Stats) {
	s.Session = addSessions(s.Session, t.Session)
	s.Data = DatagramCounters(transport.Counters(s.Data).Add(transport.Counters(t.Data)))
	s.Hosts = HostCounters{
		FramesIn: s.Hosts.FramesIn + t.Hosts.FramesIn, BytesIn: s.Hosts.BytesIn + t.Hosts.BytesIn,
		FramesOut: s.Hosts.FramesOut + t.Hosts.FramesOut, BytesOut: s.Hosts.BytesOut + t.Hosts.BytesOut,
	}
}

func addSessions(a, b SessionCounters) SessionCounters {
	return SessionCounters{
		Sent: a.Sent + b.Sent, Resent: a.Resent + b.Resent, Probes: a.Probes + b.Probes,
		Results: a.Results + b.Results, Filled: a.Filled + b.Filled, Again: a.Again + b.Again,
		Confirmed: a.Confirmed + b.Confirmed, Discarded: a.Discarded + b.Discarded,
	}
}

// Stats are a communicator's counts.
type Stats struct {
	Epoch   uint32           // the present one; even ones are trees of switches
	Session SessionCounters  // chunks and repair
	Data    DatagramCounters // datagrams to and from switches
	Hosts   HostCounters     // frames to and from other members
}

// SessionCounters count chunks, and what repairs them.
type SessionCounters struct {
	Sent      uint64 // contributions, first ones of an epoch
	Resent    uint64 // contributions sent again
	Probes    uint64 // probes, idle ones excluded
	Results   uint64 // results taken
	Filled    uint64 // results taken from another member
	Again     uint64 // finished chunks that a change of epoch put in flight again
	Confirmed uint64 // held numbers that were confirmed by an empty chunk
	Discarded uint64 // packets dropped: malformed, foreign, late or unasked
}

// DatagramCounters count datagrams to and from switches, and the system calls for
// them.
type DatagramCounters struct {
	PacketsIn, BytesIn   uint64
	PacketsOut, BytesOut uint64

	Refused    uint64 // messages that the network refused to send
	Overflowed uint64 // datagrams that found the receive buffer full, where the system reports it

	ReadCalls  uint64 // system calls for datagrams, also those that found none
	WriteCalls uint64 // system calls that sent datagrams
	WaitCalls  uint64 // those that offered the processor to others, or slept
}

// HostCounters count the frames on host connections. Bytes are those given to
// TCP, without its headers.
type HostCounters struct {
	FramesIn, BytesIn   uint64
	FramesOut, BytesOut uint64
}

// Stats returns the counts so far, those of its end once it has ended. With
// several trees, counts are their sums, and the epoch is that of the first.
func (c *Communicator) Stats() Stats {
	stats := c.ownStats()
	if c.processes != nil && c.processes.leads() {
		stats.add(c.processes.leaders.Stats())
	}
	if c.multitree != nil {
		for _, o := range c.multitree.others() {
			stats.add(o.ownStats())
		}
	}
	return stats
}

// ownStats is Stats for the communicator's own tree.
func (c *Communicator) ownStats() Stats {
	var stats Stats
	read := func() { stats = c.read() }
	if c.loop.Do(context.Background(), read) != nil {
		<-c.done // nobody else touches the core any more
		read()
	}
	return stats
}
