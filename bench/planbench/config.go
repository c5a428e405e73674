package planbench

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tributary-fabric/tributary/internal/whole/command/terminal"
	"github.com/tributary-fabric/tributary/topology"
)

// Config says what to measure.
type Config struct {
	Repaired int // k of the fat-tree in which a group of all is planned and repaired
	Largest  int // k of the fat-tree that is built, and a group of all planned in
	Online   int // k of the fat-tree of many groups
	Groups   int // how many
	Members  int // of each
	Fabrics  int // irregular ones of each size and kind
	Runs     int // the median of so many counts
	Cases    int // graphs of Steiner trees, the first of the table; 0: all
	Seed     uint64
}

// DefaultConfig measures what docs/planning.md shows.
func DefaultConfig() Config {
	return Config{Repaired: 64, Largest: 160, Online: 32, Groups: 10_000, Members: 64, Fabrics: 3, Runs: 5, Seed: 1}
}

// ErrConfig is wrapped by the errors of Validate.
var ErrConfig = errors.New("invalid benchmark")

// Validate reports what is out of range.
func (c Config) Validate() error {
	for _, k := range []int{c.Repaired, c.Largest, c.Online} {
		if k < 4 || k > topology.MaxFatTree || k%2 != 0 {
			return fmt.Errorf("fat-tree of k = %d: it is not an even number from 4 to %d: %w", k, topology.MaxFatTree, ErrConfig)
		}
	}
	if hosts := c.Online * c.Online * c.Online / 4; c.Members < 2 || c.Members > hosts {
		return fmt.Errorf("groups of %d members: they must have from 2 to %d: %w", c.Members, hosts, ErrConfig)
	}
	if c.Groups < 1 || c.Groups > 1_000_000 || c.Runs < 1 || c.Fabrics < 1 || c.Cases < 0 {
		return fmt.Errorf("%d groups, %d runs, %d fabrics or %d cases: %w", c.Groups, c.Runs, c.Fabrics, c.Cases, ErrConfig)
	}
	return nil
}

// Row is one figure. A limit of zero is none.
type Row struct {
	Name    string  `json:"name"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	Limit   float64 `json:"limit,omitempty"` // at most
	Reached bool    `json:"reached"`         // true where there is no limit
	Note    string  `json:"note,omitempty"`
}

// Report is all figures.
type Report struct {
	Rows    []Row `json:"rows"`
	Reached bool  `json:"reached"` // every limit
}

// add appends a figure with its limit.
func (r *Report) add(name string, value float64, unit string, limit float64, note string) {
	row := Row{Name: name, Value: value, Unit: unit, Limit: limit, Reached: limit == 0 || value <= limit, Note: note}
	r.Rows = append(r.Rows, row)
	r.Reached = r.Reached && row.Reached
}

func (r *Report) addTime(name string, took, limit time.Duration, note string) {
	r.add(name, float64(took.Microseconds())/1000, "ms", float64(limit.Microseconds())/1000, note)
}

// Text writes the table for people.
func (r *Report) Text(w io.Writer) error {
	t := terminal.NewTable(w, 2)
	fmt.Fprintln(t, "figure\tvalue\tlimit\t\tnote")
	for _, row := range r.Rows {
		limit, said := "-", ""
		if row.Limit != 0 {
			limit, said = fmt.Sprintf("%.4g %s", row.Limit, row.Unit), "reached"
			if !row.Reached {
				said = "MISSED"
			}
		}
		fmt.Fprintf(t, "%s\t%.4g %s\t%s\t%s\t%s\n", row.Name, row.Value, row.Unit, limit, said, row.Note)
	}
	return t.Flush()
}
