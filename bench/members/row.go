package members

import (
	"fmt"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/bench/report"
	"github.com/tributary-fabric/tributary/internal/whole/command/terminal"
)

// Row is one line of the table: what was asked, and what was measured.
type Row struct {
	Key      string             `json:"row"`
	What     string             `json:"what"`
	Asked    string             `json:"asked"`
	Measured string             `json:"measured"`
	Reached  bool               `json:"reached"`
	Figures  map[string]float64 `json:"figures,omitempty"` // by name, with the unit at its end
	Notes    []string           `json:"notes,omitempty"`
	Took     time.Duration      `json:"took_ns"` // to measure it
}

// verdict is the row's last word.
func (r *Row) verdict() string {
	if r.Reached {
		return "reached"
	}
	return "NOT reached"
}

// Table is written as text, all at the end, or as a line of JSON for each row at once.
type Table struct{ report.Rows[Row] }

// Close writes what was not written yet. It reports how many rows were not
// reached.
func (t *Table) Close() (missed int, err error) {
	for i := range t.All {
		if !t.All[i].Reached {
			missed++
		}
	}
	if t.JSON || len(t.All) == 0 {
		return missed, nil
	}
	w := terminal.NewTable(t.Out, 2)
	fmt.Fprintln(w, "ROW\tWHAT\tASKED\tMEASURED\t")
	for i := range t.All {
		r := &t.All[i]
		fmt.Fprintln(w, strings.Join([]string{r.Key, r.What, r.Asked, r.Measured, r.verdict()}, "\t"))
	}
	if err := w.Flush(); err != nil {
		return missed, err
	}
	for i := range t.All {
		for _, note := range t.All[i].Notes {
			if _, err := fmt.Fprintf(t.Out, "%s: %s\n", t.All[i].Key, note); err != nil {
				return missed, err
			}
		}
	}
	return missed, nil
}

// brief writes a time with three digits.
func brief(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
	return fmt.Sprintf("%.3g ms", float64(d)/1e6)
}
