package managerd

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/quota"
	"github.com/tributary-fabric/tributary/internal/driver/metrics"
)

// collectTimeout is how long the loop may let who collects metrics wait.
const collectTimeout = 5 * time.Second

// The metrics, as docs/metrics.md lists them.
var (
	metricSet = metrics.NewSet("tributary_manager_")

	descGroups         = metricSet.New("groups", "Groups, by how they stand.", "state")
	descTrees          = metricSet.New("trees", "Trees, by how far they have come.", "stage")
	descSwitches       = metricSet.New("switches", "Switches of the fabric.")
	descConnected      = metricSet.New("connected_switches", "Switches whose agent the manager has.")
	descDrained        = metricSet.New("drained_switches", "Switches that take nothing new.")
	descSlots          = metricSet.New("slots_used", "Slots that are reserved on all switches.")
	descFree           = metricSet.New("slots_free", "Slots that groups may still have, on all switches.")
	descWanted         = metricSet.New("slots_wanted", "Slots that groups with trees could use, on all switches.")
	descFullest        = metricSet.New("slots_fullest_share", "Share of its slots that is reserved on the switch where it is the largest.")
	descResizes        = metricSet.New("resizes_total", "Changes of a tree's window that were begun, by their direction.", "to")
	descLost           = metricSet.New("agent_losses_total", "Agents that were lost after they had been met.")
	descPlans          = metricSet.New("plans_total", "Choices of a tree, by their result.", "result")
	descPlanning       = metricSet.New("plan_duration_seconds", "Time that it took to choose a tree, or to find none.")
	descRefusals       = metricSet.New("refusals_total", "Trees that were refused, by who refused and for which resource.", "by", "resource")
	descEpochs         = metricSet.New("epochs_total", "Epochs that were given to trees.")
	descSaveFailure    = metricSet.New("store_failures_total", "Attempts to store records that failed.")
	descLinksDown      = metricSet.New("links_down", "Links that are down.")
	descRedrawn        = metricSet.New("topology_changes_total", "Changes of which nodes and links there are.")
	descMismatch       = metricSet.New("link_mismatch", "1 for a link that does not carry what trees say that they exchange over it, at this end and in this direction.", "link", "switch", "direction")
	descForged         = metricSet.New("forged_packets_total", "Packets at switches that use a neighbour's address, and lack its cookie or tag.")
	descMismatches     = metricSet.New("link_mismatches_total", "Mismatches of links that were found.")
	descTargets        = metricSet.New("discovery_targets", "gNMI targets of discovery, by whether they are connected.", "state")
	descAlarms         = metricSet.New("discovery_alarms", "Alarms of discovery that hold, by kind (docs/discovery.md).", "kind")
	descUpdates        = metricSet.New("discovery_updates_total", "Leaves that gNMI targets have sent, by what became of them.", "result")
	descTargetFailures = metricSet.New("discovery_target_failures_total", "Connections to gNMI targets that failed or ended.")
	descUndialled      = metricSet.New("discovery_refused_dials_total", "Announced addresses that were not dialled, because they are not allowed or too many.")
	descQuotaRefused   = metricSet.New("quota_refusals_total", "Requests that were refused by a quota, by whose quota and of what.", "scope", "resource")
	descQuotaUsed      = metricSet.New("quota_used", "What the hosts of a label have, and all.", "label", "resource")
	descQuotaLimit     = metricSet.New("quota_limit", "The most that they may have.", "label", "resource")
	descPlansWaiting   = metricSet.New("plans_waiting", "Plans that wait for their turns.")
	descAuditFailures  = metricSet.New("audit_failures_total", "Records of the audit log that could not be written.")
	descListsDue       = metricSet.New("revocation_list_due_timestamp_seconds", "When the first revocation list in use is to be followed by another one.")
	descBeyond         = metricSet.New("connections_closed_total", "Connections that were closed because there were too many.")
	descCertificate    = metricSet.New("certificate_expiry_timestamp_seconds", "When the certificate in use, or its authority's, expires.")
)

// Collector returns the manager's metrics.
func (d *Daemon) Collector() prometheus.Collector { return metricSet.Collector(d.collect) }

// collect gives the metrics' values.
func (d *Daemon) collect(to metrics.Values) {
	d.collectState(to)
	to.Counter(descLost, d.counts.lost.Load())
	to.Counter(descPlans, d.counts.chosen.Load(), "chosen")
	to.Counter(descPlans, d.counts.refused.Load(), "refused")
	to.Counter(descPlans, d.counts.spared.Load(), "hosts")
	to.Durations(descPlanning, &d.counts.planning)
	for s, n := range d.counts.refusals() {
		to.Counter(descRefusals, n, s.by, s.resource)
	}
	to.Counter(descEpochs, d.counts.epochs.Load())
	to.Counter(descSaveFailure, d.counts.unsaved.Load())
	if d.cfg.Audit != nil {
		to.Counter(descAuditFailures, d.cfg.Audit.Failures())
	}
	d.collectLinks(to)
	d.collectDiscovery(to)
	to.Counter(descRedrawn, d.counts.redrawn.Load())
	to.Counter(descMismatches, d.alarms.found.Load())
	to.Counter(descForged, d.alarms.forged.Load())
	to.Counter(descBeyond, d.server.Refused())
	if d.cfg.Trust != nil {
		to.Gauge(descCertificate, float64(d.cfg.Trust.Until().Unix()))
		if due := d.cfg.Trust.ListsDue(); !due.IsZero() {
			to.Gauge(descListsDue, float64(due.Unix()))
		}
	}
}

// collectLinks reports the links that are not as they should be.
func (d *Daemon) collectLinks(to metrics.Values) {
	down := 0
	view := d.view()
	for range view.LinksDown() {
		down++
	}
	to.Count(descLinksDown, down)
	all := d.mismatches(view.Graph())
	for i := range all {
		m := &all[i]
		to.Gauge(descMismatch, 1, m.Link, m.Switch, m.Direction())
	}
}

// collectState reports what the core knows, unless it has ended.
func (d *Daemon) collectState(to metrics.Values) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	var census manager.Census
	var switches []manager.SwitchState
	var resizes manager.Resizes
	var refused [quota.Scopes][quota.Resources]uint64
	var uses []manager.QuotaUse
	var waiting int
	err := d.loop.Do(ctx, func() {
		census, switches, resizes = d.core.Census(), d.core.Switches(), d.core.Resizes()
		refused, uses, waiting = d.core.QuotaRefused(), d.core.QuotaUses(), d.core.Waiting()
	})
	if err != nil {
		to.Failed(descGroups, d.excuse(err))
		return
	}
	for _, s := range manager.States {
		to.Count(descGroups, census.Groups[s], s.String())
	}
	for s := manager.TreePlanned; s < manager.TreeGone; s++ {
		to.Count(descTrees, census.Trees[s], s.String())
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
	to.Count(descSwitches, len(switches))
	to.Count(descConnected, connected)
	to.Count(descDrained, drained)
	to.Count(descSlots, used)
	to.Count(descFree, free)
	to.Count(descWanted, wanted)
	to.Gauge(descFullest, fullest)
	for s := range refused {
		for r, n := range refused[s] {
			to.Counter(descQuotaRefused, n, quota.Scope(s).String(), quota.Resource(r).Word())
		}
	}
	for _, u := range uses {
		for r, n := range u.Has {
			if limit := u.Limits.Of(quota.Resource(r)); limit > 0 {
				to.Count(descQuotaUsed, n, u.Label, quota.Resource(r).Word())
				to.Count(descQuotaLimit, limit, u.Label, quota.Resource(r).Word())
			}
		}
	}
	to.Count(descPlansWaiting, waiting)
	to.Counter(descResizes, resizes.Grown, "larger")
	to.Counter(descResizes, resizes.Shrunk, "smaller")
}
