package membership

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tributary-fabric/tributary/internal/driver/metrics"
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

// The metrics, as docs/metrics.md lists them.
var (
	metricSet = metrics.NewSet("tributary_membership_")

	descMembers     = metricSet.New("members", "Nodes in the view, this one among them.")
	descGone        = metricSet.New("gone", "Nodes that left the view and are remembered.")
	descSuspicions  = metricSet.New("suspicions", "Reports against nodes in the view.")
	descNeighbours  = metricSet.New("neighbours", "Connections to neighbours that stand.")
	descHealth      = metricSet.New("health", "How late the node is with what comes, in steps from 0.")
	descIncarnation = metricSet.New("incarnation", "Number of this life, as a rule its start in nanoseconds.")
	descNotices     = metricSet.New("notices_total", "Changes of the view, by what happened.", "change")
	descDatagrams   = metricSet.New("datagrams_total", "Datagrams, by direction.", "direction")
	descDataBytes   = metricSet.New("datagram_bytes_total", "Bytes of these datagrams, without headers.", "direction")
	descFrames      = metricSet.New("frames_total", "Frames on connections to neighbours, by direction.", "direction")
	descFrameBytes  = metricSet.New("frame_bytes_total", "Bytes of these frames, without headers.", "direction")
	descDropped     = metricSet.New("dropped_total", "What was dropped, by reason.", "reason")
)

// Collector returns the node's metrics; docs/metrics.md lists them.
func (n *Node) Collector() prometheus.Collector { return metricSet.Collector(n.collect) }

// collectTimeout bounds how long metrics wait for the node.
const collectTimeout = time.Second

// collect gives the metrics' values; of a node that has ended the counters alone.
func (n *Node) collect(to metrics.Values) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	var members, gone, suspicions, neighbours, health int
	err := n.ask(ctx, func(s *stepper) {
		members, gone, suspicions = s.members().Size(), len(s.members().History(nil)), len(s.members().Suspicions())
		neighbours, health = len(s.members().Neighbours(nil)), s.members().Health()
	})
	if err == nil {
		to.Count(descMembers, members)
		to.Count(descGone, gone)
		to.Count(descSuspicions, suspicions)
		to.Count(descNeighbours, neighbours)
		to.Count(descHealth, health)
	}
	to.Gauge(descIncarnation, float64(n.incarnation))
	k := &n.counts
	to.Counter(descNotices, k.joins.Load(), Joined.String())
	for cause := range k.leaves {
		to.Counter(descNotices, k.leaves[cause].Load(), Cause(cause).String())
	}
	to.Directions(descDatagrams, k.datagramsIn.Load(), k.datagramsOut.Load())
	to.Directions(descDataBytes, k.datagramBytesIn.Load(), k.datagramBytesOut.Load())
	to.Directions(descFrames, k.framesIn.Load(), k.framesOut.Load())
	to.Directions(descFrameBytes, k.streamBytesIn.Load(), k.streamBytesOut.Load())
	to.Counter(descDropped, k.malformed.Load(), "malformed")
	to.Counter(descDropped, k.refused.Load(), "refused")
	to.Counter(descDropped, k.turnedAway.Load(), "turned-away")
	to.Counter(descDropped, k.stuck.Load(), "stuck")
}
