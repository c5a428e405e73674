package broadcast

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/whole/command/terminal"
)

// Row is what one measurement reports.
type Row struct {
	Tree        string  `json:"tree"`
	Nodes       int     `json:"nodes"`
	Payload     int     `json:"payload_bytes"`
	Concurrency int     `json:"concurrency"`      // broadcasts under way at once, at most
	Asked       float64 `json:"asked_per_second"` // broadcasts begun a second; 0: one when another ends
	Broadcasts  int     `json:"broadcasts"`       // that are complete, all members having run them
	Rate        float64 `json:"per_second"`       // of them
	Reached     Spread  `json:"last_receipt"`     // from the root's send to the last member's receipt; zero: not reported
	Complete    Spread  `json:"complete"`         // from the root's send to the completed reply
}

// Spread is how times are distributed, in nanoseconds.
type Spread struct {
	Median time.Duration `json:"median_ns"`
	P99    time.Duration `json:"p99_ns"`
	P999   time.Duration `json:"p999_ns"`
	Most   time.Duration `json:"max_ns"`
}

// spread returns how times are distributed; it sorts them.
func spread(all []time.Duration) Spread {
	if len(all) == 0 {
		return Spread{}
	}
	slices.Sort(all)
	at := func(share float64) time.Duration { return all[min(len(all)-1, int(share*float64(len(all))))] }
	return Spread{at(0.5), at(0.99), at(0.999), all[len(all)-1]}
}

// WriteText writes rows as a table for people.
func WriteText(w io.Writer, rows []Row) error {
	t := terminal.NewTable(w, 2)
	fmt.Fprintln(t, "tree\tnodes\tbytes\tat once\tasked/s\tbroadcasts\trate/s\tlast receipt p50\tp99\tp99.9\tcomplete p50\tp99\tp99.9\tp99/p50")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%s\t%d\t%.0f\t%s\t%s\t%s\t%s\t%s\t%s\t%.1f\n",
			r.Tree, r.Nodes, r.Payload, r.Concurrency, asked(r.Asked), r.Broadcasts, r.Rate,
			short(r.Reached.Median), short(r.Reached.P99), short(r.Reached.P999),
			short(r.Complete.Median), short(r.Complete.P99), short(r.Complete.P999), r.tail())
	}
	return t.Flush()
}

// tail is how many medians the 99th percentile of completion is.
func (r *Row) tail() float64 {
	if r.Complete.Median == 0 {
		return 0
	}
	return float64(r.Complete.P99) / float64(r.Complete.Median)
}

func asked(rate float64) string {
	if rate == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f", rate)
}

func short(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < time.Millisecond:
		return fmt.Sprintf("%dus", d.Microseconds())
	}
	return fmt.Sprintf("%.2fms", float64(d)/float64(time.Millisecond))
}
