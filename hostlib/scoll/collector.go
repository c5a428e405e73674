package scoll

import "github.com/prometheus/client_golang/prometheus"

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("tributary_scoll_"+name, help, labels, nil)
}

// The metrics, as docs/metrics.md lists them.
var (
	descBroadcasts = newDesc("broadcasts_total", "Broadcasts with this node for their root that have ended, by outcome.", "outcome")
	descMessages   = newDesc("messages_total", "Messages to and from other nodes, by direction.", "direction")
	descBytes      = newDesc("message_bytes_total", "Bytes of these messages.", "direction")
	descDropped    = newDesc("dropped_total", "Messages that came to nothing, by reason.", "reason")
	descRetries    = newDesc("retries_total", "Messages that were sent again after a local failure.")
	descPanics     = newDesc("panics_total", "Callbacks that panicked.")
	descRequests   = newDesc("requests", "Requests that have not ended.")
	descCallbacks  = newDesc("callbacks", "Callbacks, by whether they run or wait for another to return.", "state")
	descGroups     = newDesc("groups", "Groups that are known.")
	descBuffers    = newDesc("buffers", "Memory that is lent, by what for.", "use")
)

type collector struct{ *Node }

// Collector returns the node's metrics; docs/metrics.md lists them.
func (n *Node) Collector() prometheus.Collector { return collector{n} }

// Describe implements prometheus.Collector.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descBroadcasts, descMessages, descBytes, descDropped, descRetries, descPanics,
		descRequests, descCallbacks, descGroups, descBuffers,
	} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, n uint64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	gauge := func(d *prometheus.Desc, n int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	k := c.Counters()
	counter(descBroadcasts, k.Succeeded, "succeeded")
	counter(descBroadcasts, k.Failed, "failed")
	counter(descMessages, k.MessagesIn, "in")
	counter(descMessages, k.MessagesOut, "out")
	counter(descBytes, k.BytesIn, "in")
	counter(descBytes, k.BytesOut, "out")
	counter(descDropped, k.Unreadable, "unreadable")
	counter(descDropped, k.Copies, "copy")
	counter(descDropped, k.Unmatched, "unmatched")
	counter(descDropped, k.Refusals, "refused")
	counter(descRetries, k.Retries)
	counter(descPanics, k.Panics)
	gauge(descRequests, k.Requests)
	gauge(descCallbacks, k.Callbacks, "running")
	gauge(descCallbacks, k.Waiting, "waiting")
	gauge(descGroups, k.Groups)
	gauge(descBuffers, k.LentBuffers, "message")
	gauge(descBuffers, k.ReplyBuffers, "reply")
	gauge(descBuffers, k.Exposed, "bulk")
}
