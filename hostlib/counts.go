package hostlib

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/histogram"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// ways and collectives are the sizes of tables by Way and by wire.Collective.
const (
	ways        = int(Mixed) + 1
	collectives = int(wire.Barrier) + 1
)

// counts are what a host counts over all its communicators, for its metrics.
type counts struct {
	done      [collectives][ways]atomic.Uint64 // operations
	failed    atomic.Uint64
	durations [ways]histogram.Durations
	entered   [2]atomic.Uint64 // epochs, by whether they are of trees of switches

	mu   sync.Mutex
	live map[*Communicator]struct{}
	past Stats // of communicators that have ended; Epoch means nothing
}

// completed counts an operation that is done.
func (n *counts) completed(c wire.Collective, way Way, took time.Duration) {
	if int(c) < collectives {
		n.done[c][way].Add(1)
		n.durations[way].Observe(took)
	}
}

// enter counts an epoch.
func (n *counts) enter(offload bool) {
	if offload {
		n.entered[Offload].Add(1)
	} else {
		n.entered[HostTree].Add(1)
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

// total returns the sum over all communicators, and how many there are beside
// those that serve another one.
func (n *counts) total() (Stats, int) {
	n.mu.Lock()
	sum := n.past
	live, whole := make([]*Communicator, 0, len(n.live)), 0
	for c := range n.live {
		live = append(live, c)
		if c.nest.of == nil {
			whole++
		}
	}
	n.mu.Unlock()
	for _, c := range live {
		sum.add(c.ownStats())
	}
	return sum, whole
}

// read returns the counts. It is for the loop, and for whoever knows that it
// has ended.
func (c *Communicator) read() Stats {
	return Stats{Epoch: c.core.Epoch(), Session: c.core.Counters(), Data: c.conn.Counters(), Hosts: c.frames.counters()}
}

func (s *Stats) add(t Stats) {
	s.Session = addSessions(s.Session, t.Session)
	s.Data = s.Data.Add(t.Data)
	s.Hosts = HostCounters{
		FramesIn: s.Hosts.FramesIn + t.Hosts.FramesIn, BytesIn: s.Hosts.BytesIn + t.Hosts.BytesIn,
		FramesOut: s.Hosts.FramesOut + t.Hosts.FramesOut, BytesOut: s.Hosts.BytesOut + t.Hosts.BytesOut,
	}
}

func addSessions(a, b session.Counters) session.Counters {
	return session.Counters{
		Sent: a.Sent + b.Sent, Resent: a.Resent + b.Resent, Probes: a.Probes + b.Probes,
		Results: a.Results + b.Results, Filled: a.Filled + b.Filled, Again: a.Again + b.Again,
		Confirmed: a.Confirmed + b.Confirmed, Discarded: a.Discarded + b.Discarded,
	}
}
