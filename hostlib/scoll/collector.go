package scoll

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tributary-fabric/tributary/internal/driver/metrics"
)

// The metrics, as docs/metrics.md lists them.
var (
	metricSet = metrics.NewSet("tributary_scoll_")

	descBroadcasts = metricSet.New("broadcasts_total", "Broadcasts with this node for their root that have ended, by outcome.", "outcome")
	descMessages   = metricSet.New("messages_total", "Messages to and from other nodes, by direction.", "direction")
	descBytes      = metricSet.New("message_bytes_total", "Bytes of these messages.", "direction")
	descDropped    = metricSet.New("dropped_total", "Messages that came to nothing, by reason.", "reason")
	descRetries    = metricSet.New("retries_total", "Messages that were sent again after a local failure.")
	descPanics     = metricSet.New("panics_total", "Callbacks that panicked.")
	descRequests   = metricSet.New("requests", "Requests that have not ended.")
	descCallbacks  = metricSet.New("callbacks", "Callbacks, by whether they run or wait for another to return.", "state")
	descGroups     = metricSet.New("groups", "Groups that are known.")
	descBuffers    = metricSet.New("buffers", "Memory that is lent, by what for.", "use")
)

// Collector returns the node's metrics; docs/metrics.md lists them.
func (n *Node) Collector() prometheus.Collector { return metricSet.Collector(n.collect) }

// collect gives the metrics' values.
func (n *Node) collect(to metrics.Values) {
	k := n.Counters()
	to.Counter(descBroadcasts, k.Succeeded, "succeeded")
	to.Counter(descBroadcasts, k.Failed, "failed")
	to.Directions(descMessages, k.MessagesIn, k.MessagesOut)
	to.Directions(descBytes, k.BytesIn, k.BytesOut)
	to.Counter(descDropped, k.Unreadable, "unreadable")
	to.Counter(descDropped, k.Copies, "copy")
	to.Counter(descDropped, k.Unmatched, "unmatched")
	to.Counter(descDropped, k.Refusals-k.Denied-k.Unproven, "refused")
	to.Counter(descDropped, k.Denied, "denied")
	to.Counter(descDropped, k.Unproven, "unproven")
	to.Counter(descRetries, k.Retries)
	to.Counter(descPanics, k.Panics)
	to.Count(descRequests, k.Requests)
	to.Count(descCallbacks, k.Callbacks, "running")
	to.Count(descCallbacks, k.Waiting, "waiting")
	to.Count(descGroups, k.Groups)
	to.Count(descBuffers, k.LentBuffers, "message")
	to.Count(descBuffers, k.ReplyBuffers, "reply")
	to.Count(descBuffers, k.Exposed, "bulk")
}
