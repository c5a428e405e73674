package rails

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/bench/report"
	"github.com/tributary-fabric/tributary/internal/whole/command/terminal"
)

// Errors of a measurement. They are wrapped; use errors.Is.
var (
	// ErrConfig: this cannot be measured.
	ErrConfig = errors.New("cannot measure this")
	// ErrWrong: messages were lost, doubled, out of order or corrupted.
	ErrWrong = errors.New("messages are not as they were sent")
)

// Row is what has been measured of one contestant and one size of messages.
type Row struct {
	Measure    string  `json:"measure"` // latency, bandwidth or cut
	Contestant string  `json:"contestant"`
	Rates      []int64 `json:"rates"` // of the fabric's rails, bit/s
	Kind       string  `json:"kind"`  // of Tributary's rails
	TLS        bool    `json:"tls"`   // of Tributary's and the plain connection
	Bytes      int     `json:"bytes"`
	Rounds     int     `json:"rounds"`

	// Latency one way in us, or bandwidth in Mbit/s: over the rounds, of the rounds' medians.
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
	P99    float64 `json:"p99"`   // of latency, the median of the rounds; 0: unknown
	Ratio  float64 `json:"ratio"` // to the first contestant's median; 0: there is none

	// Share of each rail in the bytes that the first host has sent meanwhile.
	Shares []float64 `json:"shares,omitempty"`

	Cut  *Cut   `json:"cut,omitempty"`
	Left string `json:"left,omitempty"` // why there is nothing more
}

// Cut is what became of a stream while links failed and recovered. Rates are in Mbit/s.
type Cut struct {
	Schedule string        `json:"schedule"`
	Gap      time.Duration `json:"gap_ns"`  // the longest time without a message
	Before   float64       `json:"before"`  // the first event
	During   float64       `json:"during"`  // from Settle after the first event to the last
	After    float64       `json:"after"`   // from Settle after the last event on
	Back     time.Duration `json:"back_ns"` // from the last event until 90% of the rate before; -1: not reached
	Ledger   Ledger        `json:"messages"`
}

// Settle is the time after an event that counts as part of the event.
const Settle = 300 * time.Millisecond

// cutOf returns what a flow shows.
func cutOf(s Schedule, l *Ledger, m *Meter) *Cut {
	first, last := s.Bounds()
	c := &Cut{Schedule: s.String(), Gap: m.Gap, Ledger: *l, Back: -1}
	before := m.Rate(m.First+Settle, first)
	c.Before = before / 1e6
	c.During = m.Rate(first+Settle, last) / 1e6
	c.After = m.Rate(last+Settle, m.Last) / 1e6
	if at, ok := m.Reaches(last, 20*BinTime, 0.9*before); ok && before > 0 {
		c.Back = at - last
	}
	return c
}

// Header names the columns of CSV.
var Header = []string{
	"measure", "contestant", "rails_bps", "kind", "tls", "bytes", "rounds", "median", "least", "most", "p99", "ratio", "shares",
	"schedule", "messages", "lost", "doubled", "disorder", "corrupt", "gap_ms", "before_mbps", "during_mbps", "after_mbps", "back_ms", "left",
}

// CSV returns the row's columns.
func (r *Row) CSV() []string {
	all := []string{
		r.Measure, r.Contestant, joined(r.Rates, "+", func(x int64) string { return strconv.FormatInt(x, 10) }), r.Kind, strconv.FormatBool(r.TLS),
		strconv.Itoa(r.Bytes), strconv.Itoa(r.Rounds), number3(r.Median), number3(r.Least), number3(r.Most), number3(r.P99), number3(r.Ratio),
		joined(r.Shares, "+", number3),
	}
	if c := r.Cut; c != nil {
		l := c.Ledger
		all = append(all, c.Schedule)
		for _, n := range []uint64{l.Arrived, l.Lost, l.Doubled, l.Disorder, l.Corrupt} {
			all = append(all, strconv.FormatUint(n, 10))
		}
		all = append(all, millis(c.Gap), number3(c.Before), number3(c.During), number3(c.After), millis(c.Back))
	} else {
		all = append(all, make([]string, 11)...)
	}
	return append(all, r.Left)
}

// WriteCSV writes rows with their header.
func WriteCSV(w io.Writer, rows []Row) error {
	out := csv.NewWriter(w)
	err := out.Write(Header)
	for i := range rows {
		err = errors.Join(err, out.Write(rows[i].CSV()))
	}
	out.Flush()
	return errors.Join(err, out.Error())
}

// WriteText writes rows as a table for people.
func WriteText(w io.Writer, rows []Row) error {
	t := terminal.NewTable(w, 2)
	if len(rows) > 0 && rows[0].Measure == "cut" {
		fmt.Fprintln(t, "rails\tbytes\tcontestant\tmessages\tlost\tdoubled\tdisorder\tcorrupt\tgap ms\tMbit/s before\tduring\tafter\tback ms\t")
	} else {
		fmt.Fprintln(t, "rails\tbytes\tcontestant\tmedian\tleast\tmost\tp99\tratio\tshares of rails\t")
	}
	for i := range rows {
		r := &rows[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t", joined(r.Rates, " + ", report.RateName), report.SizeName(r.Bytes), r.Contestant)
		if c := r.Cut; c != nil {
			l := c.Ledger
			fmt.Fprintf(t, "%d\t%d\t%d\t%d\t%d\t%s\t%.1f\t%.1f\t%.1f\t%s\t%s\n",
				l.Arrived, l.Lost, l.Doubled, l.Disorder, l.Corrupt, millis(c.Gap), c.Before, c.During, c.After, millis(c.Back), r.Left)
			continue
		}
		unit := map[string]string{"latency": "us", "bandwidth": "Mbit/s"}[r.Measure]
		fmt.Fprintf(t, "%s %s\t%s\t%s\t%s\t%s\t%s\t%s\n", number3(r.Median), unit, number3(r.Least), number3(r.Most), number3(r.P99), number3(r.Ratio),
			joined(r.Shares, " ", func(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }), r.Left)
	}
	return t.Flush()
}

func joined[T any](all []T, by string, text func(T) string) string {
	words := make([]string, len(all))
	for i, x := range all {
		words[i] = text(x)
	}
	return strings.Join(words, by)
}

// number3 returns a number with three decimals at most.
func number3(x float64) string {
	return strings.TrimRight(strings.TrimRight(strconv.FormatFloat(x, 'f', 3, 64), "0"), ".")
}

func millis(d time.Duration) string {
	if d < 0 {
		return "-"
	}
	return number3(float64(d) / float64(time.Millisecond))
}
