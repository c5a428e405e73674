package agentd

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// collectTimeout is how long the loops may let who collects metrics wait.
const collectTimeout = 5 * time.Second

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("tributary_agent_"+name, help, labels, nil)
}

// The metrics, as docs/metrics.md lists them.
var (
	descTrees    = newDesc("trees", "Trees that are open.")
	descSlots    = newDesc("slots", "Slots of the switch.")
	descUsed     = newDesc("slots_used", "Slots that are reserved.")
	descDraining = newDesc("draining", "1 if the switch takes nothing new, otherwise 0.")
	descRepairs  = newDesc("repairs_total", "Packets of repair that were taken or sent, by type.", "type")
	descDrops    = newDesc("drops_total", "Packets and configurations that were dropped, by reason.", "reason")
	descPackets  = newDesc("packets_total", "Packets of the trees, by direction.", "direction")
	descBytes    = newDesc("bytes_total", "Bytes of these packets, IP and UDP headers included.", "direction")
	descRefused  = newDesc("send_failures_total", "Packets that the network refused to send.")
	descOverflow = newDesc("receive_overflows_total", "Packets that found a receive buffer full.")
	descExpiry   = newDesc("certificate_expiry_timestamp_seconds", "When the certificate in use, or its authority's, expires.")
)

// events are the metrics that one event of the aggregate cores is.
var events = map[string]*prometheus.Desc{
	"taken":    newDesc("contributions_total", "Contributions that were taken."),
	"partials": newDesc("partials_total", "Chunks that were reduced and passed to the parent."),
	"results":  newDesc("results_total", "Chunks that got their result."),
	"errors":   newDesc("errors_total", "Chunks that got an error: members disagree."),
	"idle":     newDesc("idle_probes_total", "Idle probes of children."),
	"expired":  newDesc("expired_epochs_total", "Epochs whose lease ran out."),
	"handed":   newDesc("handed_packets_total", "Packets that the target has handed to the agent's CPU, and that it took."),
}

// repairs are the events that are of repair, and how they are called.
var repairs = map[string]string{
	"probes": "probe", "resent": "resent-partial", "repeated": "repeated-result", "wants": "want", "heards": "heard",
	"losts": "lost", "relayed": "relayed-probe", "kept": "relayed-idle-probe",
}

type collector struct{ *Daemon }

// Collector returns the agent's metrics. They count from its start, trees that
// are closed included.
func (d *Daemon) Collector() prometheus.Collector { return collector{d} }

// Describe implements prometheus.Collector.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descTrees, descSlots, descUsed, descDraining, descRepairs, descDrops, descPackets, descBytes, descRefused, descOverflow, descExpiry,
	} {
		to <- d
	}
	for _, d := range events {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) {
	if c.cfg.Trust != nil {
		to <- prometheus.MustNewConstMetric(descExpiry, prometheus.GaugeValue, float64(c.cfg.Trust.Until().Unix()))
	}
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	n, err := c.census(ctx)
	if err != nil {
		to <- prometheus.NewInvalidMetric(descTrees, err)
		return
	}
	gauge := func(d *prometheus.Desc, n int) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n))
	}
	counter := func(d *prometheus.Desc, n uint64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	draining := 0
	if n.draining {
		draining = 1
	}
	gauge(descTrees, n.trees)
	gauge(descSlots, n.slots)
	gauge(descUsed, n.used)
	gauge(descDraining, draining)
	sum := &n.sum
	for event, d := range events {
		counter(d, sum.Events[event])
	}
	for event, kind := range repairs {
		counter(descRepairs, sum.Events[event], kind)
	}
	for reason, count := range sum.Drops {
		if reason != "fault" { // the sum of those that follow it
			counter(descDrops, count, reason)
		}
	}
	counter(descPackets, sum.PacketsIn, "in")
	counter(descPackets, sum.PacketsOut, "out")
	counter(descBytes, sum.BytesIn, "in")
	counter(descBytes, sum.BytesOut, "out")
	counter(descRefused, sum.Refused)
	counter(descOverflow, sum.Overflowed)
}
