package managerd

import (
	"context"
	"log/slog"
	"slices"
	"time"

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
	return h
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
