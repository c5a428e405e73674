package timing

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Implementation is what a Row's first column says.
const Implementation = "tributary"

// Header is the line above all rows. The first eight columns are those that are
// reported of other implementations, too; new columns are added at the end.
const Header = "implementation,ranks,type,bytes,iterations,min_us,median_us,p99_us,goodput,transport,result,p90_us,p999_us,max_us,reduced_by"

// ErrRow is wrapped by the errors of ParseRow.
var ErrRow = errors.New("no row of a measurement")

// Row is one measurement.
type Row struct {
	Ranks      int    `json:"ranks"`
	Type       string `json:"type"`
	Bytes      int    `json:"bytes"` // of each member's vector
	Iterations int    `json:"iterations"`
	Tail              // of each operation the time that the slowest member took
	// Goodput is the bits of the vector by the median time, as a share of the
	// link's rate; 0: unknown.
	Goodput   float64 `json:"goodput,omitempty"`
	Transport string  `json:"transport"`            // "offload", "host-tree" or "mixed", if not all operations ran one way
	By        string  `json:"reduced_by,omitempty"` // what reduced on switches, such as "p4" or "agent-cpu+p4"; empty: nothing
	Right     bool    `json:"right"`                // every result that was checked, at every member

	Spans []Span `json:"-"` // of this member's timed operations; no part of the line
}

// Span is when an operation ran, in nanoseconds of Unix time.
type Span struct{ Begun, Ended int64 }

// String returns r as a line of CSV. A goodput that is not known is empty.
func (r Row) String() string {
	share, result := "", "wrong"
	if r.Goodput > 0 {
		share = fmt.Sprintf("%.4f", r.Goodput)
	}
	if r.Right {
		result = "right"
	}
	return fmt.Sprintf("%s,%d,%s,%d,%d,%.1f,%.1f,%.1f,%s,%s,%s,%.1f,%.1f,%.1f,%s", Implementation, r.Ranks, r.Type, r.Bytes, r.Iterations,
		r.Min, r.Median, r.P99, share, r.Transport, result, r.P90, r.P999, r.Max, r.By)
}

// ParseRow reads what String returns.
func ParseRow(line string) (r Row, err error) {
	cells := strings.Split(line, ",")
	if want := strings.Count(Header, ",") + 1; len(cells) != want || cells[0] != Implementation {
		return r, fmt.Errorf("%w: %q: %d columns, want %d", ErrRow, line, len(cells), want)
	}
	integer := func(i int, to *int) {
		var e error
		*to, e = strconv.Atoi(cells[i])
		err = errors.Join(err, e)
	}
	number := func(i int, to *float64) {
		var e error
		*to, e = strconv.ParseFloat(cells[i], 64)
		err = errors.Join(err, e)
	}
	r.Type, r.Transport, r.Right, r.By = cells[2], cells[9], cells[10] == "right", cells[14]
	integer(1, &r.Ranks)
	integer(3, &r.Bytes)
	integer(4, &r.Iterations)
	for i, to := range map[int]*float64{5: &r.Min, 6: &r.Median, 7: &r.P99, 11: &r.P90, 12: &r.P999, 13: &r.Max} {
		number(i, to)
	}
	if cells[8] != "" {
		number(8, &r.Goodput)
	}
	if err != nil {
		return Row{}, fmt.Errorf("%w: %q: %w", ErrRow, line, err)
	}
	return r, nil
}
