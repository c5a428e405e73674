package hostlib

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/internal/driver/metrics"
	"github.com/tributary-fabric/tributary/topology"
)

// The metrics, as docs/metrics.md lists them.
var (
	metricSet = metrics.NewSet("tributary_host_")

	descComms      = metricSet.New("communicators", "Communicators that have not ended.")
	descOperations = metricSet.New("operations_total", "Operations that are done, by collective and transport.", "collective", "transport")
	descReduced    = metricSet.New("reduced_operations_total", "Operations that some switch has reduced, by what reduced there.", "by")
	descFailed     = metricSet.New("failed_operations_total", "Operations that ended with an error, or were not started for one.")
	descDuration   = metricSet.New("operation_duration_seconds", "Time from an operation's call to its end, by transport.", "transport")
	descEpochs     = metricSet.New("epochs_entered_total", "Epochs that communicators have entered after their first, by transport.", "transport")
	descSent       = metricSet.New("contributions_total", "Contributions that were sent, first ones of an epoch.")
	descResults    = metricSet.New("results_total", "Results that were taken, by whom they came from.", "from")
	descRepairs    = metricSet.New("repairs_total", "Packets and chunks of repair, by type.", "type")
	descDiscarded  = metricSet.New("discarded_packets_total", "Packets that were malformed, foreign, late or unasked.")
	descPackets    = metricSet.New("packets_total", "Packets to and from switches, by direction.", "direction")
	descBytes      = metricSet.New("bytes_total", "Bytes of these packets, IP and UDP headers included.", "direction")
	descSendFailed = metricSet.New("send_failures_total", "Packets that the network refused to send.")
	descOverflow   = metricSet.New("receive_overflows_total", "Packets that found a receive buffer full.")
	descFrames     = metricSet.New("frames_total", "Frames to and from other members, by direction.", "direction")
	descFrameBytes = metricSet.New("frame_bytes_total", "Bytes of these frames, without TCP and IP headers.", "direction")
	descOpen       = metricSet.New("connections", "Connections with other hosts, of all services, that carry frames.")
	descCalls      = metricSet.New("calls_total", "Calls for connections between hosts: accepted and rejected ones of others, made and failed ones of this host.", "result")
	descTraffic    = metricSet.New("connection_frames_total", "Frames on connections with other hosts, of all services, by direction.", "direction")
	descTrafficB   = metricSet.New("connection_bytes_total", "Bytes of these frames, without TCP and IP headers.", "direction")
	descUnclaimed  = metricSet.New("unclaimed_frames_total", "Frames for a service that is not on this host.")
	descDead       = metricSet.New("dead_connections_total", "Connections that were closed because nothing came.")
	descRails      = metricSet.New("rails", "Rails of this host, by whether their interfaces carry them.", "state")
	descRailUp     = metricSet.New("rail_up", "Whether a rail's interface carries it, 1 or 0.", "rail")
	descRailPaths  = metricSet.New("rail_paths", "Connections to other hosts on a rail that carry frames, and those that are wanted and do not.", "rail", "state")
	descRailBytes  = metricSet.New("rail_bytes_total", "Bytes of frames on a rail, without TLS, TCP, UDP and IP headers.", "rail", "direction")
	descRailResent = metricSet.New("rail_resent_bytes_total", "Bytes that were not acknowledged when their path on the rail was lost, and went over another.", "rail")
	descRailLost   = metricSet.New("rail_lost_paths_total", "Paths on a rail that ended without being closed.", "rail")
	descRailBack   = metricSet.New("rail_recovered_paths_total", "Paths on a rail that were made again after they were lost.", "rail")
	descRailFailed = metricSet.New("rail_failed_calls_total", "Calls of this host for a path on a rail that failed.", "rail")
	descRailFlight = metricSet.New("rail_unacknowledged_bytes", "Bytes that are sent on a rail and not acknowledged.", "rail")
	descRailRate   = metricSet.New("rail_rate_bytes_per_second", "Highest rate that was measured on a path of a rail.", "rail")
	descRailDelay  = metricSet.New("rail_delay_seconds", "Lowest round trip without a queue of a path of a rail.", "rail")
	descBuffers    = metricSet.New("connection_buffer_bytes", "Memory in which frames lie that have come.")
)

// Collector returns the host's metrics, including those of ended communicators;
// docs/metrics.md lists them. A process with several hosts distinguishes them by
// prometheus.WrapRegistererWith.
func (h *Host) Collector() prometheus.Collector { return metricSet.Collector(h.collect) }

// collect gives the metrics' values.
func (h *Host) collect(to metrics.Values) {
	n := &h.counts
	for transport := range Transport(transports) {
		for kind := schedule.Allreduce; kind < schedule.Collectives; kind++ {
			to.Counter(descOperations, n.done[kind][transport].Load(), kind.String(), transport.String())
		}
		to.Durations(descDuration, &n.durations[transport], transport.String())
	}
	for by := range topology.Pipelines {
		to.Counter(descReduced, n.served[by].Load(), topology.Pipeline(by).String())
	}
	to.Counter(descFailed, n.failed.Load())
	to.Counter(descEpochs, n.entered[Offload].Load(), Offload.String())
	to.Counter(descEpochs, n.entered[HostTree].Load(), HostTree.String())
	k := h.Connections()
	to.Gauge(descOpen, float64(k.Open))
	to.Gauge(descBuffers, float64(k.BufferBytes))
	h.collectRails(to)
	to.Counter(descCalls, k.Accepted, "accepted")
	to.Counter(descCalls, k.Rejected, "rejected")
	to.Counter(descCalls, k.Calls-k.Failed, "made")
	to.Counter(descCalls, k.Failed, "failed")
	to.Directions(descTraffic, k.FramesIn, k.FramesOut)
	to.Directions(descTrafficB, k.BytesIn, k.BytesOut)
	to.Counter(descUnclaimed, k.Unclaimed)
	to.Counter(descDead, k.Dead)

	sum, live := n.total()
	to.Gauge(descComms, float64(live))
	s := &sum.Session
	to.Counter(descSent, s.Sent)
	to.Counter(descResults, s.Results, "tree")
	to.Counter(descResults, s.Filled, "member")
	to.Counter(descRepairs, s.Resent, "resent-contribution")
	to.Counter(descRepairs, s.Probes, "probe")
	to.Counter(descRepairs, s.Again, "chunk-again")
	to.Counter(descRepairs, s.Confirmed, "confirmed-number")
	to.Counter(descDiscarded, s.Discarded)
	to.Directions(descPackets, sum.Data.PacketsIn, sum.Data.PacketsOut)
	to.Directions(descBytes, sum.Data.BytesIn, sum.Data.BytesOut)
	to.Counter(descSendFailed, sum.Data.Refused)
	to.Counter(descOverflow, sum.Data.Overflowed)
	to.Directions(descFrames, sum.Hosts.FramesIn, sum.Hosts.FramesOut)
	to.Directions(descFrameBytes, sum.Hosts.BytesIn, sum.Hosts.BytesOut)
}

// collectRails gives the values of the host's rails, by name.
func (h *Host) collectRails(to metrics.Values) {
	up := 0
	rails := h.Rails()
	for i := range rails {
		r := &rails[i]
		carries := 0
		if r.Up {
			carries = 1
		}
		up += carries
		to.Count(descRailUp, carries, r.Name)
		to.Count(descRailPaths, r.Paths, r.Name, "up")
		to.Count(descRailPaths, r.Missing, r.Name, "missing")
		to.Counter(descRailBytes, r.BytesIn, r.Name, "in")
		to.Counter(descRailBytes, r.BytesOut, r.Name, "out")
		to.Counter(descRailResent, r.ResentBytes, r.Name)
		to.Counter(descRailLost, r.Lost, r.Name)
		to.Counter(descRailBack, r.Recovered, r.Name)
		to.Counter(descRailFailed, r.Failed, r.Name)
		to.Count(descRailFlight, r.InFlight, r.Name)
		if r.Rate != 0 {
			to.Gauge(descRailRate, float64(r.Rate)/8, r.Name)
		}
		if r.Delay != 0 {
			to.Gauge(descRailDelay, r.Delay.Seconds(), r.Name)
		}
	}
	to.Count(descRails, up, "up")
	to.Count(descRails, len(rails)-up, "down")
}
