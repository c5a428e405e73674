package crowd

import (
	"fmt"
	"io"

	"github.com/tributary-fabric/tributary/bench/report"
	"github.com/tributary-fabric/tributary/internal/whole/command/terminal"
)

// Table writes rows as they come as JSON, or in the end as text.
type Table struct{ report.Rows[Row] }

// Close writes what is not written yet. It returns how many results were wrong,
// and how many groups were to be offloaded and were not, at the end.
func (t *Table) Close() (wrong, elsewhere int, err error) {
	w := terminal.NewTable(t.Out, 2)
	for i := range t.All {
		r := &t.All[i]
		if r.Transport == Transports[0] {
			elsewhere += r.Groups - r.Later
		}
		for _, run := range r.Runs {
			wrong += run.Wrong
		}
		if t.JSON {
			continue
		}
		if i == 0 {
			fmt.Fprint(w, "TRANSPORT\tGROUPS\tFORMED\tOFFLOADED\tLATER")
			for _, run := range r.Runs {
				fmt.Fprintf(w, "\t%d B ON ALL", run.Bytes)
			}
			fmt.Fprintln(w, "\tIDLE A MEMBER\tAN AGENT'S TREE\tPROCESSES\t")
		}
		r.write(w)
	}
	return wrong, elsewhere, w.Flush()
}

// write writes r as a line. Memory is that which is resident; live, in
// parentheses, what is on heap and stacks.
func (r *Row) write(w io.Writer) {
	fmt.Fprintf(w, "%s\t%d\t%.2f s\t%d\t%d", r.Transport, r.Groups, r.Formed, r.Offloaded, r.Later)
	for _, run := range r.Runs {
		fmt.Fprintf(w, "\t%.1f ms (%.1f-%.1f)", 1e3*run.Median, 1e3*run.Best, 1e3*run.Worst)
	}
	ends := uint64(r.Groups * r.Members)
	trees := uint64(max(1, 3*r.Offloaded))
	fmt.Fprintf(w, "\t%s (%s)\t%s (%s)\t%s, %s, %s\t\n",
		kibibytes(r.Idle.Hosts.Resident/ends), kibibytes(r.Idle.Hosts.Live/ends),
		kibibytes(r.Idle.Switches.Resident/trees), kibibytes(r.Idle.Switches.Live/trees),
		mebibytes(r.Busy.Hosts.Resident), mebibytes(r.Busy.Switches.Resident), mebibytes(r.Busy.Manager.Resident))
}

func kibibytes(n uint64) string { return fmt.Sprintf("%d KiB", (n+1<<9)>>10) }
func mebibytes(n uint64) string { return fmt.Sprintf("%d MiB", (n+1<<19)>>20) }
