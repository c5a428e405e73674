package scaling

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/whole/command/terminal"
)

// table is a table with its title.
type table struct {
	title string
	head  []string
	rows  [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// Text writes the tables for people.
func (r *Report) Text(w io.Writer) error {
	for i, t := range r.tables() {
		if i > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintln(w, t.title); err != nil {
			return err
		}
		out := terminal.NewTable(w, 2)
		for _, row := range append([][]string{t.head}, t.rows...) {
			fmt.Fprintln(out, strings.Join(row, "\t"))
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// Markdown returns the tables as docs/scaling.md has them.
func (r *Report) Markdown() []byte {
	var b bytes.Buffer
	for _, t := range r.tables() {
		fmt.Fprintf(&b, "%s:\n\n| %s |\n|%s\n", t.title, strings.Join(t.head, " | "), strings.Repeat("---|", len(t.head)))
		for _, row := range t.rows {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func (r *Report) tables() []table {
	all := []table{r.costTable()}
	if len(r.Reproduction) > 0 {
		all = append(all, r.reproductionTable())
	}
	all = append(all, r.publishedTable())
	for _, ends := range []string{Cards, Sockets} {
		all = append(all, r.scaleTable(ends))
	}
	return append(all, r.variantTable())
}

func (r *Report) costTable() table {
	t := table{title: "Costs in ns, of " + r.Costs.Taken, head: []string{"", "call", "packet", "KiB"}}
	for _, row := range []struct {
		name string
		Cost
	}{
		{"a batch is sent", r.Costs.Send}, {"a batch is received", r.Costs.Receive},
		{"step of a switch's core", r.Costs.Aggregate}, {"step of a member's core", r.Costs.Session},
		{"a look that finds nothing", Cost{Call: r.Costs.Look}}, {"the same, where nobody else looks", Cost{Call: r.Costs.Alone}}, {"a wake-up", Cost{Call: r.Costs.Wake}},
		{"cold caches", Cost{Call: r.Costs.Cold}}, {"a host adds to a vector", Cost{Byte: r.Costs.Reduce}},
	} {
		cells := []string{row.name}
		for _, x := range []float64{row.Call, row.Packet, 1024 * row.Byte} {
			switch {
			case x == 0:
				cells = append(cells, "")
			case x >= 100:
				cells = append(cells, fmt.Sprintf("%.0f", x))
			default:
				cells = append(cells, fmt.Sprintf("%.3g", x))
			}
		}
		t.add(cells...)
	}
	return t
}

func (r *Report) reproductionTable() table {
	t := table{title: "Namespaces on two processors", head: []string{"", "measured", "simulated", "off", ""}}
	disturbed := false
	for _, row := range r.Reproduction {
		disturbed = disturbed || row.Others > 0
	}
	if disturbed {
		t.head = append(t.head, "others had")
	}
	for _, row := range r.Reproduction {
		said := "reached"
		if !row.Reached {
			said = "**missed**"
		}
		line := []string{sized(row.Bytes) + ", " + rated(row.Rate), timed(row.Median), timed(row.Simulated), fmt.Sprintf("%+.0f %%", 100*row.Off), said}
		if disturbed {
			line = append(line, fmt.Sprintf("%.0f %%", 100*row.Others))
		}
		t.add(line...)
	}
	return t
}

func (r *Report) publishedTable() table {
	t := table{title: "128 hosts, 100 Gbit/s, beside SHARP", head: []string{"", "hosts, published", "hosts, model", "SHARP, published", "tree, model"}}
	for _, p := range r.Published {
		t.add(sized(p.Bytes), timed(p.ByHosts), timed(p.ModelHost), timed(p.BySharp), timed(p.ModelTree))
	}
	return t
}

// scaleTable has a line for each size and number of hosts, and columns for each rate.
func (r *Report) scaleTable(ends string) table {
	t := table{title: "Hosts with " + ends, head: []string{"", "hosts"}}
	var line []string
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Ends != ends {
			continue
		}
		if start := []string{sized(row.Bytes), fmt.Sprint(row.Hosts)}; len(line) == 0 || !slices.Equal(line[:2], start) {
			line = start
			t.add(nil...)
		}
		line = append(line, timed(row.CutThrough), timed(row.StoreForward), fmt.Sprintf("%.2f", row.Share),
			timed(row.HostTime)+", "+row.Algorithm, fmt.Sprintf("%.2f", float64(row.CutThrough)/float64(row.HostTime)))
		t.rows[len(t.rows)-1] = line
		if len(t.rows) == 1 {
			t.head = append(t.head, rated(row.Rate)+": cut-through", "store-and-forward", "of the link", "best of hosts", "ratio")
		}
	}
	return t
}

func (r *Report) variantTable() table {
	t := table{title: "Less in hardware", head: []string{"", "", "hosts", "rate", "tree", "of the link"}}
	for _, v := range r.Variants {
		t.add(v.Name, sized(v.Bytes), fmt.Sprint(v.Hosts), rated(v.Rate), timed(v.Tree), fmt.Sprintf("%.3f", v.Share))
	}
	return t
}

func sized(bytes int) string {
	switch {
	case bytes >= 1<<20 && bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes >= 1<<10 && bytes%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d B", bytes)
}

func rated(rate int64) string {
	switch {
	case rate == 0:
		return "unshaped"
	case rate >= 1e9:
		return fmt.Sprintf("%g Gbit/s", float64(rate)/1e9)
	}
	return fmt.Sprintf("%g Mbit/s", float64(rate)/1e6)
}

// timed writes a time in three digits.
func timed(d time.Duration) string {
	x, unit := float64(d)/1e3, "us"
	if d >= time.Millisecond {
		x, unit = float64(d)/1e6, "ms"
	}
	if x >= 100 {
		return fmt.Sprintf("%.0f %s", x, unit)
	}
	return fmt.Sprintf("%.3g %s", x, unit)
}
