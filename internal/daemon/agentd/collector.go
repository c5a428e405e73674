package agentd

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tributary-fabric/tributary/internal/driver/metrics"
)

// collectTimeout is how long the loops may let who collects metrics wait.
const collectTimeout = 5 * time.Second

// The metrics, as docs/metrics.md lists them.
var (
	metricSet = metrics.NewSet("tributary_agent_")

	descTrees    = metricSet.New("trees", "Trees that are open.")
	descSlots    = metricSet.New("slots", "Slots of the switch.")
	descUsed     = metricSet.New("slots_used", "Slots that are reserved.")
	descDraining = metricSet.New("draining", "1 if the switch takes nothing new, otherwise 0.")
	descRepairs  = metricSet.New("repairs_total", "Packets of repair that were taken or sent, by type.", "type")
	descKernel   = metricSet.New("kernel_chunks_total", "Chunks that the kernel has taken, reduced or given the result of, by step.", "step")
	descPassed   = metricSet.New("kernel_passed_packets_total", "Packets that the kernel has left to the agent, by reason.", "reason")
	descDrops    = metricSet.New("drops_total", "Packets and configurations that were dropped, by reason.", "reason")
	descPackets  = metricSet.New("packets_total", "Packets of the trees, by direction.", "direction")
	descBytes    = metricSet.New("bytes_total", "Bytes of these packets, IP and UDP headers included.", "direction")
	descRefused  = metricSet.New("send_failures_total", "Packets that the network refused to send.")
	descOverflow = metricSet.New("receive_overflows_total", "Packets that found a receive buffer full.")
	descStreams  = metricSet.New("telemetry_streams", "Subscribers of telemetry.")
	descMerged   = metricSet.New("telemetry_coalesced_total", "Updates of telemetry that a later one has replaced, because the subscriber was slow.")
	descListsDue = metricSet.New("revocation_list_due_timestamp_seconds", "When the first revocation list in use is to be followed by another one.")
	descBeyond   = metricSet.New("connections_closed_total", "Connections that were closed because there were too many.")
	descExpiry   = metricSet.New("certificate_expiry_timestamp_seconds", "When the certificate in use, or its authority's, expires.")
)

// events are the metrics that one event of the aggregate cores is.
var events = map[string]*prometheus.Desc{
	"taken":    metricSet.New("contributions_total", "Contributions that were taken."),
	"partials": metricSet.New("partials_total", "Chunks that were reduced and passed to the parent."),
	"results":  metricSet.New("results_total", "Chunks that got their result."),
	"errors":   metricSet.New("errors_total", "Chunks that got an error: members disagree."),
	"idle":     metricSet.New("idle_probes_total", "Idle probes of children."),
	"expired":  metricSet.New("expired_epochs_total", "Epochs whose lease ran out."),
	"handed":   metricSet.New("handed_packets_total", "Packets that the target has handed to the agent's CPU, and that it took."),
}

// repairs are the events that are of repair, and how they are called.
var repairs = map[string]string{
	"probes": "probe", "resent": "resent-partial", "repeated": "repeated-result", "wants": "want", "heards": "heard",
	"losts": "lost", "relayed": "relayed-probe", "kept": "relayed-idle-probe",
}

// inKernel are the events of the kernel's program, and how its steps are called; passed
// are those of packets that it left to the agent, and their reasons.
var (
	inKernel = map[string]string{"kernel-taken": "contribution", "kernel-partials": "partial", "kernel-results": "result"}
	passed   = map[string]string{
		"kernel-passed-odd": "odd", "kernel-passed-owned": "owned", "kernel-passed-partly": "partly", "kernel-passed-sizes": "sizes", "kernel-passed-no-memory": "no-memory",
	}
)

// Collector returns the agent's metrics. They count from its start, trees that
// are closed included.
func (d *Daemon) Collector() prometheus.Collector { return metricSet.Collector(d.collect) }

// collect gives the metrics' values.
func (d *Daemon) collect(to metrics.Values) {
	to.Counter(descBeyond, d.server.Refused())
	if d.cfg.Trust != nil {
		to.Gauge(descExpiry, float64(d.cfg.Trust.Until().Unix()))
		if due := d.cfg.Trust.ListsDue(); !due.IsZero() {
			to.Gauge(descListsDue, float64(due.Unix()))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	n, err := d.census(ctx)
	if err != nil {
		to.Failed(descTrees, err)
		return
	}
	draining := 0
	if n.draining {
		draining = 1
	}
	to.Count(descTrees, len(n.trees))
	to.Count(descSlots, n.slots)
	to.Count(descUsed, n.used)
	to.Count(descDraining, draining)
	sum := &n.sum
	for event, d := range events {
		to.Counter(d, sum.Events[event])
	}
	for event, kind := range repairs {
		to.Counter(descRepairs, sum.Events[event], kind)
	}
	for event, step := range inKernel {
		to.Counter(descKernel, sum.Events[event], step)
	}
	for event, reason := range passed {
		to.Counter(descPassed, sum.Events[event], reason)
	}
	for reason, count := range drops(sum) {
		to.Counter(descDrops, count, reason)
	}
	to.Directions(descPackets, sum.PacketsIn, sum.PacketsOut)
	to.Directions(descBytes, sum.BytesIn, sum.BytesOut)
	to.Counter(descRefused, sum.Refused)
	to.Counter(descOverflow, sum.Overflowed)
	d.collectNeighbors(ctx, to)
	sent, err := d.telemetry.Counters(ctx)
	if err != nil {
		to.Failed(descStreams, err)
		return
	}
	to.Count(descStreams, sent.Streams)
	to.Counter(descMerged, sent.Coalesced)
}
