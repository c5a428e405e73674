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

// The bounds of the map's history.
const (
	maxHistory     = 256 // changes
	maxDifferences = 64  // that one names
)

// record adds a change to the map's history, and logs it. The caller holds fabric.
func (d *Daemon) record(cause string, what []string) {
	h := d.remember(cause, what)
	for _, line := range h.What {
		d.log.Warn("the map has changed", slog.String("change", line), slog.String("cause", cause))
	}
	if h.More > 0 {
		d.log.Warn("the map has changed", slog.Int("more", h.More), slog.String("cause", cause))
	}
}

// remember adds lines to the map's history. The caller holds fabric.
func (d *Daemon) remember(cause string, what []string) rpc.MapChange {
	if len(what) == 0 {
		return rpc.MapChange{}
	}
	h := rpc.MapChange{At: time.Now(), Version: d.overlay.Version(), Cause: cause, What: what}
	if len(what) > maxDifferences {
		h.What, h.More = what[:maxDifferences:maxDifferences], len(what)-maxDifferences
	}
	if len(d.history) >= maxHistory {
		d.history = slices.Delete(d.history, 0, len(d.history)-maxHistory+1)
	}
	d.history = append(d.history, h)
	if kept, err := json.Marshal(keptChange(h)); err == nil {
		_ = d.post(manager.Keep{Kind: manager.HistoryRecord, Place: d.place, Kept: kept}) // its only error is that the manager ends
	}
	d.place = (d.place + 1) % maxHistory
	return h
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
		d.history = append(d.history, rpc.MapChange(c))
		d.place = (r.Group + 1) % maxHistory
	}
}

// TopologyHistory implements rpc.Manager.
func (d *Daemon) TopologyHistory(context.Context) ([]rpc.MapChange, error) {
	d.fabric.Lock()
	defer d.fabric.Unlock()
	return slices.Clone(d.history), nil
}

// lines says differences in words.
func lines(all []topology.Difference) []string {
	text := make([]string, len(all))
	for i, x := range all {
		text[i] = x.String()
	}
	return text
}
