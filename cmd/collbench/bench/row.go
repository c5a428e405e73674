package bench

import (
	"fmt"
	"math"
	"slices"
)

// Implementation is what a Row's first column says.
const Implementation = "tributary"

// Header is the line above all rows. The first eight columns are those that the
// programs of other implementations print, too.
const Header = "implementation,ranks,type,bytes,iterations,min_us,median_us,p99_us,goodput,way,result"

// Row is one measurement.
type Row struct {
	Ranks      int
	Type       string
	Bytes      int
	Iterations int
	// Of each operation the time that the slowest member took, in microseconds:
	// the least, the median, and the 99th percentile.
	Min, Median, P99 float64
	Goodput          float64 // bits of the vector by the median time, as a share of the link's rate; 0: unknown
	Way              string  // "offload", "host-tree" or "mixed", if not all operations ran one way
	Right            bool    // every result at every member
}

// String returns r as a line of CSV. A goodput that is not known is empty.
func (r Row) String() string {
	goodput, result := "", "wrong"
	if r.Goodput > 0 {
		goodput = fmt.Sprintf("%.4f", r.Goodput)
	}
	if r.Right {
		result = "right"
	}
	return fmt.Sprintf("%s,%d,%s,%d,%d,%.1f,%.1f,%.1f,%s,%s,%s", Implementation, r.Ranks, r.Type, r.Bytes, r.Iterations,
		r.Min, r.Median, r.P99, goodput, r.Way, result)
}

// times fills in what the slowest member's times (in microseconds, not empty)
// come to.
func (r *Row) times(slowest []float64, rate int64) {
	slices.Sort(slowest)
	n := len(slowest)
	r.Min, r.Median, r.P99 = slowest[0], slowest[n/2], slowest[int(math.Floor(float64(n)*0.99))]
	if rate > 0 && r.Median > 0 {
		r.Goodput = float64(r.Bytes) * 8 / (r.Median * 1e-6) / float64(rate)
	}
}
