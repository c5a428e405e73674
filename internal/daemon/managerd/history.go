package managerd

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/topology"
)

// maxDifferences is the most lines of an entry of the map's history.
const maxDifferences = 64

// history is the map's, in order. Alarms have a share of their own: who can raise them
// evicts no changes.
type history struct {
	all             []entry
	changes, alarms share
}

// entry is one of the map's history. It takes the place in the store of the oldest of its
// share.
type entry struct {
	rpc.MapChange
	place uint32
}

// share are the places that a part of the map's history has in the store.
type share struct{ first, size, next uint32 }

func newHistory() history {
	const changes, alarms = 256, 128
	return history{changes: share{size: changes}, alarms: share{first: changes, size: alarms}}
}

// add adds an entry, and returns its place.
func (h *history) add(to *share, c rpc.MapChange) uint32 {
	place := to.first + to.next
	h.put(to, place, c)
	return place
}

func (h *history) put(to *share, place uint32, c rpc.MapChange) {
	h.all = append(slices.DeleteFunc(h.all, func(e entry) bool { return e.place == place }), entry{c, place})
	to.next = (place - to.first + 1) % to.size
}

// at returns the share that has a place.
func (h *history) at(place uint32) *share {
	if place < h.alarms.first {
		return &h.changes
	}
	return &h.alarms
}

// record adds a change to the map's history, and logs it. The caller holds fabric.
func (d *Daemon) record(cause string, what []string) {
	c := d.entry(cause, what, 0)
	d.remember(&d.history.changes, c)
	d.logChange(slog.LevelWarn, c)
}

// entry returns an entry of the map's history that has lines, as far as there is room, and
// says that there are more. The caller holds fabric.
func (d *Daemon) entry(cause string, what []string, more int) rpc.MapChange {
	most := min(len(what), maxDifferences)
	return rpc.MapChange{At: time.Now(), Version: d.overlay.Version(), Cause: cause, What: what[:most:most], More: more + len(what) - most}
}

// logChange logs a change of the map.
func (d *Daemon) logChange(level slog.Level, c rpc.MapChange) {
	ctx, cause := context.Background(), slog.String("cause", c.Cause)
	for _, line := range c.What {
		d.log.Log(ctx, level, "the map has changed", slog.String("change", line), cause)
	}
	if c.More > 0 {
		d.log.Log(ctx, level, "the map has changed", slog.Int("more", c.More), cause)
	}
}

// withoutLatencies returns differences of a fabric from graph was less those of links' latencies
// alone. These are logged for who debugs: on a busy machine measurements vary. The caller
// holds fabric.
func (d *Daemon) withoutLatencies(all []topology.Difference, was *topology.Graph, c *FabricChange) (others []topology.Difference) {
	var latencies []topology.Difference
	for _, x := range all {
		if isOfLatency(x, was, c.Graph) {
			latencies = append(latencies, x)
		} else {
			others = append(others, x)
		}
	}
	d.logChange(slog.LevelDebug, d.entry(c.Cause, lines(latencies), 0))
	return others
}

// isOfLatency reports whether what differs between two graphs is the latency of a link alone.
func isOfLatency(x topology.Difference, was, is *topology.Graph) bool {
	if x.What != "link" || x.Kind != topology.Changed {
		return false
	}
	l, inWas := was.LookupLink(x.Name)
	k, inIs := is.LookupLink(x.Name)
	if !inWas || !inIs {
		return false
	}
	before, after := was.Link(l), is.Link(k)
	if before.Latency = after.Latency; before.LinkSpec != after.LinkSpec {
		return false
	}
	for _, end := range before.Ends {
		if n, ok := is.Lookup(was.Name(end.Node)); !ok || was.AddressAt(l, end.Node) != is.AddressAt(k, n) {
			return false
		}
	}
	return true
}

// remember adds an entry to the map's history, unless it says nothing. The caller holds
// fabric.
func (d *Daemon) remember(to *share, c rpc.MapChange) {
	if len(c.What) == 0 {
		return
	}
	place := d.history.add(to, c)
	if kept, err := json.Marshal(keptChange(c)); err == nil {
		_ = d.post(manager.Keep{Kind: manager.HistoryRecord, Place: place, Kept: kept}) // its only error is that the manager ends
	}
}

// keptChange is an entry of the map's history as it is stored, in JSON.
type keptChange struct {
	At      time.Time `json:"at"`
	Version uint64    `json:"version"`
	Cause   string    `json:"cause,omitempty"`
	What    []string  `json:"what"`
	More    int       `json:"more,omitempty"`
}

// restoreHistory takes the map's history from the store.
func (d *Daemon) restoreHistory(records []manager.Record) {
	kept := slices.DeleteFunc(slices.Clone(records), func(r manager.Record) bool { return r.Kind != manager.HistoryRecord })
	slices.SortFunc(kept, func(a, b manager.Record) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, r := range kept {
		var c keptChange
		if err := json.Unmarshal(r.Kept, &c); err != nil {
			d.log.Warn("the store has an entry of the map's history that cannot be read", slog.Any("error", err))
			continue
		}
		d.history.put(d.history.at(r.Group), r.Group, rpc.MapChange(c))
	}
}

// TopologyHistory implements rpc.Manager.
func (d *Daemon) TopologyHistory(context.Context) ([]rpc.MapChange, error) {
	d.fabric.Lock()
	defer d.fabric.Unlock()
	all := make([]rpc.MapChange, len(d.history.all))
	for i := range all {
		all[i] = d.history.all[i].MapChange
	}
	return all, nil
}

// lines says differences in words.
func lines(all []topology.Difference) []string {
	text := make([]string, len(all))
	for i, x := range all {
		text[i] = x.String()
	}
	return text
}
