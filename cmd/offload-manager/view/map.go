package view

import (
	"fmt"
	"io"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/ground/printable"
)

// Difference is what two topologies differ by in JSON.
type Difference struct {
	Version uint64   `json:"version"` // of the operator's part
	What    []string `json:"what"`    // a line each
	More    int      `json:"more"`    // lines beyond those
}

// NewDifference returns a difference as it is written.
func NewDifference(d rpc.TopologyDifference) Difference {
	return Difference{d.Version, append([]string{}, d.What...), d.More}
}

// Text writes it for people, under a title.
func (v Difference) Text(w io.Writer, title string) error {
	if len(v.What) == 0 {
		_, err := fmt.Fprintf(w, "%s: nothing (version %d of the operator's part)\n", title, v.Version)
		return err
	}
	if _, err := fmt.Fprintf(w, "%s (version %d of the operator's part):\n", title, v.Version); err != nil {
		return err
	}
	return linesText(w, v.What, v.More)
}

func linesText(w io.Writer, what []string, more int) error {
	for _, line := range what {
		if _, err := fmt.Fprintf(w, "    %s\n", printable.Text(line)); err != nil {
			return err
		}
	}
	if more > 0 {
		_, err := fmt.Fprintf(w, "    and %d more\n", more)
		return err
	}
	return nil
}

// MapChange is an entry of the map's history in JSON.
type MapChange struct {
	At      time.Time `json:"at"`
	Version uint64    `json:"version"` // of the map, after it
	Cause   string    `json:"cause"`   // empty: what says so
	What    []string  `json:"what"`    // a line each
	More    int       `json:"more"`    // lines beyond those
}

// NewMapChanges returns the map's history as it is written.
func NewMapChanges(all []rpc.MapChange) []MapChange {
	v := make([]MapChange, len(all))
	for i, c := range all {
		v[i] = MapChange{c.At.UTC(), c.Version, c.Cause, append([]string{}, c.What...), c.More}
	}
	return v
}

// MapChangesText writes the map's history for people, the oldest first.
func MapChangesText(w io.Writer, all []MapChange) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "The map has not changed.")
		return err
	}
	for _, c := range all {
		cause := ""
		if c.Cause != "" {
			cause = ": " + printable.Text(c.Cause)
		}
		if _, err := fmt.Fprintf(w, "%s, change %d%s\n", c.At.Format("2006-01-02 15:04:05.000 MST"), c.Version, cause); err != nil {
			return err
		}
		if err := linesText(w, c.What, c.More); err != nil {
			return err
		}
	}
	return nil
}
