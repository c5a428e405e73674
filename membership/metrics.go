package membership

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// counts are what a node counts for its metrics.
type counts struct {
	datagramsIn, datagramsOut         atomic.Uint64
	datagramBytesIn, datagramBytesOut atomic.Uint64 // without headers
	framesIn, framesOut               atomic.Uint64
	streamBytesIn, streamBytesOut     atomic.Uint64
	malformed                         atomic.Uint64 // packets that were dropped
	refused                           atomic.Uint64 // datagrams that the network refused
	turnedAway                        atomic.Uint64 // connections above the bound
	stuck                             atomic.Uint64 // streams that were cut because nobody read them
	joins                             atomic.Uint64
	leaves                            [len(causeNames)]atomic.Uint64 // by Cause
}

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("tributary_membership_"+name, help, labels, nil)
}

// The metrics, as docs/metrics.md lists them.
var (
	descMembers     = newDesc("members", "Nodes in the view, this one among them.")
	descGone        = newDesc("gone", "Nodes that left the view and are remembered.")
	descSuspicions  = newDesc("suspicions", "Reports against nodes in the view.")
	descNeighbours  = newDesc("neighbours", "Connections to neighbours that stand.")
	descHealth      = newDesc("health", "How late the node is with what comes, in steps from 0.")
	descIncarnation = newDesc("incarnation", "Number of this life, as a rule its start in nanoseconds.")
	descNotices     = newDesc("notices_total", "Changes of the view, by what happened.", "change")
	descDatagrams   = newDesc("datagrams_total", "Datagrams, by direction.", "direction")
	descDataBytes   = newDesc("datagram_bytes_total", "Bytes of these datagrams, without headers.", "direction")
	descFrames      = newDesc("frames_total", "Frames on connections to neighbours, by direction.", "direction")
	descFrameBytes  = newDesc("frame_bytes_total", "Bytes of these frames, without headers.", "direction")
	descDropped     = newDesc("dropped_total", "What was dropped, by reason.", "reason")
)

type collector struct{ *Node }

// Collector returns the node's metrics; docs/metrics.md lists them.
func (n *Node) Collector() prometheus.Collector { return collector{n} }

// Describe implements prometheus.Collector.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descMembers, descGone, descSuspicions, descNeighbours, descHealth, descIncarnation,
		descNotices, descDatagrams, descDataBytes, descFrames, descFrameBytes, descDropped,
	} {
		to <- d
	}
}

// collectTimeout bounds how long metrics wait for the node.
const collectTimeout = time.Second

// Collect implements prometheus.Collector. Of a node that has ended it reports the
// counters alone.
func (c collector) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	counter := func(d *prometheus.Desc, n *atomic.Uint64, label string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n.Load()), label)
	}
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	var members, gone, suspicions, neighbours, health int
	err := c.ask(ctx, func(s *stepper) {
		members, gone, suspicions = s.members().Size(), len(s.members().History(nil)), len(s.members().Suspicions())
		neighbours, health = len(s.members().Neighbours(nil)), s.members().Health()
	})
	if err == nil {
		gauge(descMembers, float64(members))
		gauge(descGone, float64(gone))
		gauge(descSuspicions, float64(suspicions))
		gauge(descNeighbours, float64(neighbours))
		gauge(descHealth, float64(health))
	}
	gauge(descIncarnation, float64(c.incarnation))
	n := &c.counts
	counter(descNotices, &n.joins, Joined.String())
	for cause := range n.leaves {
		counter(descNotices, &n.leaves[cause], Cause(cause).String())
	}
	counter(descDatagrams, &n.datagramsIn, "in")
	counter(descDatagrams, &n.datagramsOut, "out")
	counter(descDataBytes, &n.datagramBytesIn, "in")
	counter(descDataBytes, &n.datagramBytesOut, "out")
	counter(descFrames, &n.framesIn, "in")
	counter(descFrames, &n.framesOut, "out")
	counter(descFrameBytes, &n.streamBytesIn, "in")
	counter(descFrameBytes, &n.streamBytesOut, "out")
	counter(descDropped, &n.malformed, "malformed")
	counter(descDropped, &n.refused, "refused")
	counter(descDropped, &n.turnedAway, "turned-away")
	counter(descDropped, &n.stuck, "stuck")
}
