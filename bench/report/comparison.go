package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/bench/timing"
)

// Comparison is one row of collbench peers.
type Comparison struct {
	Kind        string       `json:"kind"` // KindComparison
	Taken       time.Time    `json:"taken"`
	Processors  int          `json:"processors"` // of the machine
	Fabric      Fabric       `json:"fabric"`
	Collective  string       `json:"collective,omitempty"` // empty: allreduce
	Bytes       int          `json:"bytes"`
	Rounds      int          `json:"rounds"`
	Contestants []Contestant `json:"contestants"`
	// Strangers is the share of the processors, at the least, that processes
	// had which have nothing to do with the measurement.
	Strangers float64 `json:"strangers"`
}

// KindComparison is what Comparison.Kind says.
const KindComparison = "comparison"

// Contestant is what one implementation did in a row.
type Contestant struct {
	Name        string `json:"name"`
	Iterations  int    `json:"iterations"` // over all rounds; 0: see Left
	timing.Tail        // of each operation the time that the slowest rank took
	Right       bool   `json:"right"`
	Transport   string `json:"transport,omitempty"`
	// Microseconds of processor time of one operation, its barrier included:
	// of all hosts' processes, and of all switches'.
	User     float64 `json:"host_user_us"`
	System   float64 `json:"host_system_us"`
	Switches float64 `json:"switches_us,omitempty"`
	Left     string  `json:"left_out,omitempty"` // why it is not, or not always, there
}

// Hosts returns the hosts' processor time of one operation in microseconds.
func (c *Contestant) Hosts() float64 { return c.User + c.System }

// Own returns Tributary's part, nil if it has none.
func (c *Comparison) Own() *Contestant {
	return c.least(func(x *Contestant) bool { return x.Name == timing.Implementation })
}

// Best returns the peer with the least median, nil if there is none.
func (c *Comparison) Best() *Contestant {
	return c.least(func(x *Contestant) bool { return !strings.HasPrefix(x.Name, timing.Implementation) })
}

// BestOf returns the best of the variants of one peer, by the beginning of their
// names.
func (c *Comparison) BestOf(peer string) *Contestant {
	return c.least(func(x *Contestant) bool { return strings.HasPrefix(x.Name, peer) })
}

// least returns the contestant with the least median of those that count, and
// have measured.
func (c *Comparison) least(counts func(*Contestant) bool) (best *Contestant) {
	for i := range c.Contestants {
		x := &c.Contestants[i]
		if x.Iterations > 0 && counts(x) && (best == nil || x.Median < best.Median) {
			best = x
		}
	}
	return best
}

// Ratio returns Tributary's median by the best peer's; 0: one of them is not
// there.
func (c *Comparison) Ratio() float64 {
	own, best := c.Own(), c.Best()
	if own == nil || best == nil {
		return 0
	}
	return ratio(own.Median, best.Median)
}

// LinkLimit returns the microseconds that a host's link needs to carry its
// vector, in full frames; 0: the link is as fast as the machine.
func (c *Comparison) LinkLimit() float64 {
	if c.Fabric.Rate == 0 {
		return 0
	}
	return float64(c.Bytes) / timing.ChunkBytes * frame * 8 / float64(c.Fabric.Rate) * 1e6
}

// ComparisonHeader is the line above the lines of all comparisons in CSV.
const ComparisonHeader = "implementation,ranks,type,bytes,iterations,min_us,median_us,p99_us,rate,result,p90_us,p999_us,max_us," +
	"host_user_us,host_system_us,switches_us,of_best_peer,left_out,collective"

// CSV returns a line for each contestant.
func (c *Comparison) CSV() string {
	var b strings.Builder
	for i := range c.Contestants {
		x := &c.Contestants[i]
		result, share := "wrong", ""
		if x.Right {
			result = "right"
		}
		if x.Iterations == 0 {
			result = ""
		}
		if best := c.Best(); best != nil && x.Iterations > 0 {
			share = fmt.Sprintf("%.3f", ratio(x.Median, best.Median))
		}
		fmt.Fprintf(&b, "%s,%d,float32,%d,%d,%.1f,%.1f,%.1f,%d,%s,%.1f,%.1f,%.1f,%.1f,%.1f,%.1f,%s,%s,%s\n", x.Name, c.Fabric.Hosts, c.Bytes,
			x.Iterations, x.Min, x.Median, x.P99, c.Fabric.Rate, result, x.P90, x.P999, x.Max, x.User, x.System, x.Switches, share, inLine(x.Left), cmp.Or(c.Collective, "allreduce"))
	}
	return b.String()
}

// inLine returns a text as a cell of CSV.
func inLine(text string) string {
	return strings.NewReplacer("\n", "; ", ",", ";", `"`, "'").Replace(text)
}
