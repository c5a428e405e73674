package report

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// long is the size from which on the link's limit says something: below, a
// packet takes longer through the machine than over a link.
const long = 1 << 20

// Text returns c as a table for people, with the ratio beneath it.
func (c *Comparison) Text() string {
	var b strings.Builder
	if c.Collective != "" {
		fmt.Fprintf(&b, "%s of ", c.Collective)
	}
	fmt.Fprintf(&b, "%s, links %s, %d hosts", SizeName(c.Bytes), RateName(c.Fabric.Rate), c.Fabric.Hosts)
	if c.Fabric.Processes > 1 {
		fmt.Fprintf(&b, " with %d processes each", c.Fabric.Processes)
	}
	b.WriteByte('\n')
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\ttimes\tleast us\tmedian us\t99 %\tmost\tof the best peer\thosts' processors us\tswitches' us\t")
	best := c.Best()
	for i := range c.Contestants {
		x := &c.Contestants[i]
		if x.Iterations == 0 {
			fmt.Fprintf(t, "%s\tleft out\t\t\t\t\t\t\t\t\n", x.Name)
			continue
		}
		share, switches := "", ""
		if best != nil {
			share = fmt.Sprintf("%.2f", ratio(x.Median, best.Median))
		}
		if x.Switches > 0 {
			switches = fmt.Sprintf("%.0f", x.Switches)
		}
		fmt.Fprintf(t, "%s\t%d\t%.0f\t%.0f\t%.0f\t%.0f\t%s\t%.0f\t%s\t\n", x.Name, x.Iterations, x.Min, x.Median, x.P99, x.Max, share, x.Hosts(), switches)
	}
	_ = t.Flush() // to memory
	for _, x := range c.Contestants {
		if x.Left != "" {
			fmt.Fprintf(&b, "  %s was left out: %s\n", x.Name, inLine(x.Left))
		}
		if x.Iterations > 0 && !x.Right {
			fmt.Fprintf(&b, "  WRONG RESULTS of %s\n", x.Name)
		}
	}
	if c.Strangers > disturbed {
		fmt.Fprintf(&b, "  DISTURBED: others had %.0f %% of the processors meanwhile\n", 100*c.Strangers)
	}
	if own, limit := c.Own(), c.LinkLimit(); own != nil && best != nil {
		fmt.Fprintf(&b, "  tributary takes %.2f of the time of %s", c.Ratio(), best.Name)
		if limit > 0 && c.Bytes >= long {
			fmt.Fprintf(&b, ", and %.3f of the link's limit", own.Median/limit)
		}
		if gloo := c.BestOf("gloo"); gloo != nil {
			fmt.Fprintf(&b, "; its hosts %.2f of the processor time of %s", ratio(own.Hosts(), gloo.Hosts()), gloo.Name)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	return b.String()
}
