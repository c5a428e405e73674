package managerd

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tributary-fabric/tributary/internal/core/manager"
)

// collectTimeout is how long the loop may let who collects metrics wait.
const collectTimeout = 5 * time.Second

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("tributary_manager_"+name, help, labels, nil)
}

// The metrics, as docs/metrics.md lists them.
var (
	descGroups      = newDesc("groups", "Groups, by how they stand.", "state")
	descTrees       = newDesc("trees", "Trees, by how far they have come.", "stage")
	descSwitches    = newDesc("switches", "Switches of the fabric.")
	descConnected   = newDesc("connected_switches", "Switches whose agent the manager has.")
	descDrained     = newDesc("drained_switches", "Switches that take nothing new.")
	descSlots       = newDesc("slots_used", "Slots that are reserved on all switches.")
	descFree        = newDesc("slots_free", "Slots that groups may still have, on all switches.")
	descWanted      = newDesc("slots_wanted", "Slots that groups with trees could use, on all switches.")
	descFullest     = newDesc("slots_fullest_share", "Share of its slots that is reserved on the switch where it is the largest.")
	descResizes     = newDesc("resizes_total", "Changes of a tree's window that were begun, by their direction.", "to")
	descLost        = newDesc("agent_losses_total", "Agents that were lost after they had been met.")
	descPlans       = newDesc("plans_total", "Choices of a tree, by their result.", "result")
	descPlanning    = newDesc("plan_duration_seconds", "Time that it took to choose a tree, or to find none.")
	descRefusals    = newDesc("refusals_total", "Trees that were refused, by who refused and for which resource.", "by", "resource")
	descEpochs      = newDesc("epochs_total", "Epochs that were given to trees.")
	descSaveFailure = newDesc("store_failures_total", "Attempts to store records that failed.")
	descLinksDown   = newDesc("links_down", "Links that are down.")
	descMismatch    = newDesc("link_mismatch", "1 for a link that does not carry what trees say that they exchange over it, at this end and in this direction.", "link", "switch", "direction")
	descMismatches  = newDesc("link_mismatches_total", "Mismatches of links that were found.")
	descCertificate = newDesc("certificate_expiry_timestamp_seconds", "When the certificate in use, or its authority's, expires.")
)

type collector struct{ *Daemon }

// Collector returns the manager's metrics.
func (d *Daemon) Collector() prometheus.Collector { return collector{d} }

// Describe implements prometheus.Collector.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descGroups, descTrees, descSwitches, descConnected, descDrained, descSlots, descFree, descWanted, descFullest, descResizes, descLost,
		descPlans, descPlanning, descRefusals, descEpochs, descSaveFailure,
		descLinksDown, descMismatch, descMismatches, descCertificate,
	} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) {
	c.collectState(to)
	counter := func(d *prometheus.Desc, n uint64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	counter(descLost, c.counts.lost.Load())
	counter(descPlans, c.counts.chosen.Load(), "chosen")
	counter(descPlans, c.counts.refused.Load(), "refused")
	counter(descPlans, c.counts.spared.Load(), "hosts")
	planning := c.counts.planning.Snapshot()
	to <- prometheus.MustNewConstHistogram(descPlanning, planning.Count, planning.Sum, planning.Buckets)
	for s, n := range c.counts.refusals() {
		counter(descRefusals, n, s.by, s.resource)
	}
	counter(descEpochs, c.counts.epochs.Load())
	counter(descSaveFailure, c.counts.unsaved.Load())
	c.collectLinks(to)
	counter(descMismatches, c.alarms.found.Load())
	if c.cfg.Trust != nil {
		to <- prometheus.MustNewConstMetric(descCertificate, prometheus.GaugeValue, float64(c.cfg.Trust.Until().Unix()))
	}
}

// collectLinks reports the links that are not as they should be.
func (c collector) collectLinks(to chan<- prometheus.Metric) {
	down := 0
	for range c.view().LinksDown() {
		down++
	}
	to <- prometheus.MustNewConstMetric(descLinksDown, prometheus.GaugeValue, float64(down))
	_, all := c.mismatches()
	for i := range all {
		m := &all[i]
		to <- prometheus.MustNewConstMetric(descMismatch, prometheus.GaugeValue, 1, m.Link, m.Switch, m.Direction())
	}
}

// collectState reports what the core knows, unless it has ended.
func (c collector) collectState(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	var census manager.Census
	var switches []manager.SwitchState
	var resizes manager.Resizes
	err := c.loop.Do(ctx, func() { census, switches, resizes = c.core.Census(), c.core.Switches(), c.core.Resizes() })
	if err != nil {
		to <- prometheus.NewInvalidMetric(descGroups, c.excuse(err))
		return
	}
	gauge := func(d *prometheus.Desc, n int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	for _, s := range manager.States {
		gauge(descGroups, census.Groups[s], s.String())
	}
	for s := manager.TreePlanned; s < manager.TreeGone; s++ {
		gauge(descTrees, census.Trees[s], s.String())
	}
	connected, drained, used, free, wanted, fullest := 0, 0, 0, 0, 0, 0.0
	for i := range switches {
		s := &switches[i]
		if s.Connected {
			connected++
		}
		if s.Drained {
			drained++
		}
		used += s.Used
		free += max(0, s.Most-s.Used)
		wanted += s.Wanted
		if s.Most > 0 {
			fullest = max(fullest, float64(s.Used)/float64(s.Most))
		}
	}
	gauge(descSwitches, len(switches))
	gauge(descConnected, connected)
	gauge(descDrained, drained)
	gauge(descSlots, used)
	gauge(descFree, free)
	gauge(descWanted, wanted)
	to <- prometheus.MustNewConstMetric(descFullest, prometheus.GaugeValue, fullest)
	to <- prometheus.MustNewConstMetric(descResizes, prometheus.CounterValue, float64(resizes.Grown), "larger")
	to <- prometheus.MustNewConstMetric(descResizes, prometheus.CounterValue, float64(resizes.Shrunk), "smaller")
}
