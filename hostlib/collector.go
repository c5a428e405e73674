package hostlib

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/topology"
)

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("tributary_host_"+name, help, labels, nil)
}

// The metrics, as docs/metrics.md lists them.
var (
	descComms      = newDesc("communicators", "Communicators that have not ended.")
	descOperations = newDesc("operations_total", "Operations that are done, by collective and transport.", "collective", "transport")
	descReduced    = newDesc("reduced_operations_total", "Operations that some switch has reduced, by what reduced there.", "by")
	descFailed     = newDesc("failed_operations_total", "Operations that ended with an error, or were not started for one.")
	descDuration   = newDesc("operation_duration_seconds", "Time from an operation's call to its end, by transport.", "transport")
	descEpochs     = newDesc("epochs_entered_total", "Epochs that communicators have entered after their first, by transport.", "transport")
	descSent       = newDesc("contributions_total", "Contributions that were sent, first ones of an epoch.")
	descResults    = newDesc("results_total", "Results that were taken, by whom they came from.", "from")
	descRepairs    = newDesc("repairs_total", "Packets and chunks of repair, by type.", "type")
	descDiscarded  = newDesc("discarded_packets_total", "Packets that were malformed, foreign, late or unasked.")
	descPackets    = newDesc("packets_total", "Packets to and from switches, by direction.", "direction")
	descBytes      = newDesc("bytes_total", "Bytes of these packets, IP and UDP headers included.", "direction")
	descSendFailed = newDesc("send_failures_total", "Packets that the network refused to send.")
	descOverflow   = newDesc("receive_overflows_total", "Packets that found a receive buffer full.")
	descFrames     = newDesc("frames_total", "Frames to and from other members, by direction.", "direction")
	descFrameBytes = newDesc("frame_bytes_total", "Bytes of these frames, without TCP and IP headers.", "direction")
	descOpen       = newDesc("connections", "Connections with other hosts, of all services, that carry frames.")
	descCalls      = newDesc("calls_total", "Calls for connections between hosts: accepted and rejected ones of others, made and failed ones of this host.", "result")
	descTraffic    = newDesc("connection_frames_total", "Frames on connections with other hosts, of all services, by direction.", "direction")
	descTrafficB   = newDesc("connection_bytes_total", "Bytes of these frames, without TCP and IP headers.", "direction")
	descUnclaimed  = newDesc("unclaimed_frames_total", "Frames for a service that is not on this host.")
	descDead       = newDesc("dead_connections_total", "Connections that were closed because nothing came.")
	descBuffers    = newDesc("connection_buffer_bytes", "Memory in which frames lie that have come.")
)

type collector struct{ *Host }

// Collector returns the host's metrics, over all its communicators, those that
// have ended included; docs/metrics.md says which. A process with several
// hosts distinguishes them by prometheus.WrapRegistererWith.
func (h *Host) Collector() prometheus.Collector { return collector{h} }

// Describe implements prometheus.Collector.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descComms, descOperations, descReduced, descFailed, descDuration, descEpochs, descSent, descResults, descRepairs, descDiscarded,
		descPackets, descBytes, descSendFailed, descOverflow, descFrames, descFrameBytes,
		descOpen, descCalls, descTraffic, descTrafficB, descUnclaimed, descDead, descBuffers,
	} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, n uint64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	n := &c.counts
	for transport := range Transport(transports) {
		for kind := wire.Allreduce; int(kind) < collectives; kind++ {
			counter(descOperations, n.done[kind][transport].Load(), kind.String(), transport.String())
		}
		took := n.durations[transport].Snapshot()
		to <- prometheus.MustNewConstHistogram(descDuration, took.Count, took.Sum, took.Buckets, transport.String())
	}
	for by := range topology.Pipelines {
		counter(descReduced, n.served[by].Load(), topology.Pipeline(by).String())
	}
	counter(descFailed, n.failed.Load())
	counter(descEpochs, n.entered[Offload].Load(), Offload.String())
	counter(descEpochs, n.entered[HostTree].Load(), HostTree.String())
	k := c.Connections()
	to <- prometheus.MustNewConstMetric(descOpen, prometheus.GaugeValue, float64(k.Open))
	to <- prometheus.MustNewConstMetric(descBuffers, prometheus.GaugeValue, float64(k.BufferBytes))
	counter(descCalls, k.Accepted, "accepted")
	counter(descCalls, k.Rejected, "rejected")
	counter(descCalls, k.Calls-k.Failed, "made")
	counter(descCalls, k.Failed, "failed")
	counter(descTraffic, k.FramesIn, "in")
	counter(descTraffic, k.FramesOut, "out")
	counter(descTrafficB, k.BytesIn, "in")
	counter(descTrafficB, k.BytesOut, "out")
	counter(descUnclaimed, k.Unclaimed)
	counter(descDead, k.Dead)

	sum, live := n.total()
	to <- prometheus.MustNewConstMetric(descComms, prometheus.GaugeValue, float64(live))
	s := &sum.Session
	counter(descSent, s.Sent)
	counter(descResults, s.Results, "tree")
	counter(descResults, s.Filled, "member")
	counter(descRepairs, s.Resent, "resent-contribution")
	counter(descRepairs, s.Probes, "probe")
	counter(descRepairs, s.Again, "chunk-again")
	counter(descRepairs, s.Confirmed, "confirmed-number")
	counter(descDiscarded, s.Discarded)
	counter(descPackets, sum.Data.PacketsIn, "in")
	counter(descPackets, sum.Data.PacketsOut, "out")
	counter(descBytes, sum.Data.BytesIn, "in")
	counter(descBytes, sum.Data.BytesOut, "out")
	counter(descSendFailed, sum.Data.Refused)
	counter(descOverflow, sum.Data.Overflowed)
	counter(descFrames, sum.Hosts.FramesIn, "in")
	counter(descFrames, sum.Hosts.FramesOut, "out")
	counter(descFrameBytes, sum.Hosts.BytesIn, "in")
	counter(descFrameBytes, sum.Hosts.BytesOut, "out")
}
