package report

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ErrRecord: a line is none that collbench fabric or peers writes as JSON.
var ErrRecord = errors.New("no record of a measurement")

// Records are what collbench has written as JSON, a line each.
type Records struct {
	Comparisons  []Comparison
	Measurements []Measurement
	Contentions  []Contention
}

// Read adds the records of a file, whose name is for errors. A later record of
// the same row takes an earlier one's place.
func (r *Records) Read(from io.Reader, name string) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<24)
	for n := 1; lines.Scan(); n++ {
		if len(strings.TrimSpace(lines.Text())) == 0 {
			continue
		}
		if err := r.add(lines.Bytes()); err != nil {
			return fmt.Errorf("%s:%d: %w: %w", name, n, ErrRecord, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (r *Records) add(line []byte) error {
	var head struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return err
	}
	switch head.Kind {
	case KindComparison:
		return keep(line, &r.Comparisons, func(a, b *Comparison) bool { return a.Bytes == b.Bytes && a.Fabric == b.Fabric })
	case KindMeasurement:
		return keep(line, &r.Measurements, func(a, b *Measurement) bool {
			return a.Bytes == b.Bytes && a.Fabric == b.Fabric && a.Groups == b.Groups && a.Group == b.Group && a.Pace == b.Pace && a.BesideTCP == b.BesideTCP
		})
	case KindContention:
		return keep(line, &r.Contentions, func(a, b *Contention) bool {
			return a.Bytes == b.Bytes && a.Fabric == b.Fabric && slices.EqualFunc(a.Shares, b.Shares, func(x, y Share) bool { return x.Name == y.Name })
		})
	}
	return fmt.Errorf("its kind is %q", head.Kind)
}

// keep puts a record in the place of the one that is the same row, or at the end.
func keep[T any](line []byte, all *[]T, same func(a, b *T) bool) error {
	var x T
	if err := json.Unmarshal(line, &x); err != nil {
		return err
	}
	if i := slices.IndexFunc(*all, func(y T) bool { return same(&x, &y) }); i >= 0 {
		(*all)[i] = x
		return nil
	}
	*all = append(*all, x)
	return nil
}

// Markdown returns the tables of docs/benchmarks.md, as far as there are records
// for them.
func (r *Records) Markdown() string {
	var b strings.Builder
	r.sort()
	if len(r.Comparisons) > 0 {
		r.ratios(&b)
		r.medians(&b)
	}
	if slices.ContainsFunc(r.Measurements, func(m Measurement) bool { return m.plain() }) {
		r.costs(&b)
	}
	if lossy := r.losses(); lossy != "" {
		b.WriteString(lossy)
	}
	if len(r.Contentions) > 0 {
		r.shares(&b)
	}
	r.disturbances(&b)
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// plain reports whether m is of one group on a fabric that loses nothing.
func (m *Measurement) plain() bool { return m.Groups <= 1 && m.Fabric.Loss == 0 && m.Pace != "stream" }

// sort puts shaped links first, then small vectors.
func (r *Records) sort() {
	by := func(a, b Fabric, x, y int) int {
		if (a.Rate == 0) != (b.Rate == 0) {
			return map[bool]int{true: 1, false: -1}[a.Rate == 0]
		}
		if a.Rate != b.Rate {
			return int(a.Rate - b.Rate)
		}
		return x - y
	}
	slices.SortStableFunc(r.Comparisons, func(a, b Comparison) int { return by(a.Fabric, b.Fabric, a.Bytes, b.Bytes) })
	slices.SortStableFunc(r.Measurements, func(a, b Measurement) int { return by(a.Fabric, b.Fabric, a.Bytes, b.Bytes) })
	slices.SortStableFunc(r.Contentions, func(a, b Contention) int { return by(a.Fabric, b.Fabric, a.Bytes, b.Bytes) })
}

func rowName(bytes int, rate int64) string {
	if rate == 0 {
		return SizeName(bytes) + ", unshaped"
	}
	return SizeName(bytes) + ", " + RateName(rate)
}

// ratios is the table of what users feel.
func (r *Records) ratios(b *strings.Builder) {
	first := &r.Comparisons[0]
	fmt.Fprintf(b, "Taken %s on a machine with %d processors; %d hosts, %d switches.\n\n", first.Taken.Format("2006-01-02"), first.Processors,
		first.Fabric.Hosts, first.Fabric.Switches)
	fmt.Fprintln(b, "| | best peer | its median | Tributary's | ratio | of the link's limit | 99th percentile by median | hosts' processor time by Gloo's |")
	fmt.Fprintln(b, "|---|---|---|---|---|---|---|---|")
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		own, best := c.Own(), c.Best()
		if own == nil || best == nil {
			continue
		}
		limit, gloo := "-", "-"
		if l := c.LinkLimit(); l > 0 && c.Bytes >= long {
			limit = fmt.Sprintf("%.3f", own.Median/l)
		}
		if g := c.BestOf("gloo"); g != nil {
			gloo = fmt.Sprintf("%.2f", ratio(own.Hosts(), g.Hosts()))
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | **%.2f** | %s | %.1f | %s |\n", rowName(c.Bytes, c.Fabric.Rate), best.Name, timeName(best.Median),
			timeName(own.Median), c.Ratio(), limit, ratio(own.P99, own.Median), gloo)
	}
	fmt.Fprintln(b)
}

// disturbances names what was not measured alone.
func (r *Records) disturbances(b *strings.Builder) {
	var names []string
	for i := range r.Comparisons {
		if c := &r.Comparisons[i]; c.Strangers > disturbed {
			names = append(names, fmt.Sprintf("%s (%.0f %%, beside the peers)", rowName(c.Bytes, c.Fabric.Rate), 100*c.Strangers))
		}
	}
	for i := range r.Measurements {
		if m := &r.Measurements[i]; m.Group == 0 && m.Elapsed >= disturbedTime && m.Strangers() > disturbed {
			names = append(names, fmt.Sprintf("%s (%.0f %%)", rowName(m.Bytes, m.Fabric.Rate), 100*m.Strangers()))
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(b, "Other processes used the processors, by share: %s.\n\n", strings.Join(names, "; "))
	}
}

// medians is the table of all contestants.
func (r *Records) medians(b *strings.Builder) {
	var names []string
	for _, c := range r.Comparisons {
		for _, x := range c.Contestants {
			if !slices.Contains(names, x.Name) {
				names = append(names, x.Name)
			}
		}
	}
	fmt.Fprint(b, "Medians / 99th percentiles:\n\n| |")
	for _, name := range names {
		fmt.Fprintf(b, " %s |", name)
	}
	fmt.Fprintf(b, "\n|---|%s\n", strings.Repeat("---|", len(names)))
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		fmt.Fprintf(b, "| %s |", rowName(c.Bytes, c.Fabric.Rate))
		for _, name := range names {
			x := c.least(func(x *Contestant) bool { return x.Name == name })
			if x == nil {
				fmt.Fprint(b, " - |")
				continue
			}
			fmt.Fprintf(b, " %s / %s |", timeName(x.Median), timeName(x.P99))
		}
		fmt.Fprintln(b)
	}
	fmt.Fprintln(b)
}

// costs is the table of what an operation takes from the machine.
func (r *Records) costs(b *strings.Builder) {
	fmt.Fprintln(b, "Costs of an operation, summed over all processes of a side:")
	fmt.Fprintln(b)
	fmt.Fprintln(b, "| | median | 99 % | 99.9 % | most | hosts' processors (kernel) | switches' processors (kernel) | softirq | idle | allocations a chunk: host, switch | packets: hosts, switches | system calls: hosts, switches |")
	fmt.Fprintln(b, "|---|---|---|---|---|---|---|---|---|---|---|---|")
	for i := range r.Measurements {
		m := &r.Measurements[i]
		if !m.plain() {
			continue
		}
		h, s, n := m.HostCost(), m.SwitchCost(), max(1, m.operations())
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s (%s) | %s (%s) | %s | %s | %.4f, %.4f | %s | %s |\n", rowName(m.Bytes, m.Fabric.Rate),
			timeName(m.Median), timeName(m.P99), timeName(m.P999), timeName(m.Max),
			timeName(h.User+h.System), timeName(h.System), timeName(s.User+s.System), timeName(s.System),
			timeName(micros(m.Machine.Soft)/n), timeName(micros(m.Machine.Idle)/n),
			h.PerChunk, s.PerChunk, m.packets(), m.calls())
	}
	fmt.Fprintln(b)
}

// losses is the table of measurements on fabrics that lose packets, each beside
// one that loses none.
func (r *Records) losses() string {
	var b strings.Builder
	for i := range r.Measurements {
		m := &r.Measurements[i]
		if m.Fabric.Loss == 0 {
			continue
		}
		lossless := m.Fabric
		lossless.Loss = 0
		at := slices.IndexFunc(r.Measurements, func(x Measurement) bool {
			return x.Fabric == lossless && x.Bytes == m.Bytes && x.Groups == m.Groups && x.Pace == m.Pace
		})
		if at < 0 {
			continue
		}
		if b.Len() == 0 {
			fmt.Fprint(&b, "With packet loss at every sender:\n\n| | lost | median | of that without loss |\n|---|---|---|---|\n")
		}
		fmt.Fprintf(&b, "| %s | %g %% | %s | %.3f |\n", rowName(m.Bytes, m.Fabric.Rate), m.Fabric.Loss*100, timeName(m.Median), ratio(m.Median, r.Measurements[at].Median))
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	return b.String()
}

// shares is the table of who had what of a link.
func (r *Records) shares(b *strings.Builder) {
	fmt.Fprint(b, "Shares of a link:\n\n| | shares of the link | of its even share | Jain's index |\n|---|---|---|---|\n")
	for _, c := range r.Contentions {
		var names, even []string
		for _, s := range c.Shares {
			names = append(names, fmt.Sprintf("%s %.3f", s.Name, s.Link))
			even = append(even, fmt.Sprintf("%.3f", s.Link*float64(len(c.Shares))))
		}
		fmt.Fprintf(b, "| %s | %s | %s | %.4f |\n", rowName(c.Bytes, c.Fabric.Rate), strings.Join(names, ", "), strings.Join(even, ", "), c.Jain)
	}
	fmt.Fprintln(b)
}
