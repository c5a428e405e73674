package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/bench/gauge"
	"github.com/tributary-fabric/tributary/bench/timing"
	"github.com/tributary-fabric/tributary/pathsel"
)

// Fabric is where something was measured.
type Fabric struct {
	Hosts    int   `json:"hosts"`
	Switches int   `json:"switches"`
	Rate     int64 `json:"rate"` // bit/s of every link in each direction; 0: as fast as the machine
	// Links are the hosts', as the manager reports them; of older comparisons unknown.
	Links pathsel.Links `json:"links,omitzero"`
	Loss  float64       `json:"loss,omitempty"`
	// Processes of each host; 0 or 1: one.
	Processes int `json:"processes,omitempty"`
}

// Measurement is one row of collbench fabric, and what it cost.
type Measurement struct {
	Kind   string `json:"kind"` // KindMeasurement
	Fabric Fabric `json:"fabric"`
	Group  int    `json:"group"`  // which one of those that measured at once
	Groups int    `json:"groups"` // how many did
	Pace   string `json:"pace"`
	// BesideTCP: a TCP stream shared the links, and the processors.
	BesideTCP bool `json:"beside_tcp,omitempty"`
	timing.Row

	// Of the time from the first timed operation to the last, barriers
	// included, all groups together:
	Elapsed  time.Duration `json:"elapsed_ns"`
	Hosts    gauge.Reading `json:"hosts"`
	Switches gauge.Reading `json:"switches"`
	Machine  gauge.Machine `json:"machine"`
}

// KindMeasurement is what Measurement.Kind says.
const KindMeasurement = "measurement"

// Header is the line above all measurements in CSV. It begins with
// timing.Header; new columns are added at the end. Costs are those of one
// operation, of all processes of a side together; those a MiB count the vectors
// of all members.
const Header = timing.Header + ",group,host_user_us,host_system_us,switch_user_us,switch_system_us,softirq_us,idle_us," +
	"host_allocations,switch_allocations,host_allocations_per_chunk,switch_allocations_per_chunk," +
	"host_packets_per_mib,switch_packets_per_mib,host_calls_per_mib,switch_calls_per_mib"

// Cost is a side's part in one operation.
type Cost struct {
	User, System  float64 // microseconds of processor time, of all its processes
	Allocations   float64 // of all its processes
	PerChunk      float64 // allocations of one process for one chunk
	Packets       float64
	PacketsPerMiB float64 // of all vectors
	Calls         float64
	CallsPerMiB   float64
	CallsKnown    bool
}

// operations returns how many were timed in the window.
func (m *Measurement) operations() float64 { return float64(m.Iterations * max(1, m.Groups)) }

// CostOf returns what a reading of this many processes comes to.
func (m *Measurement) CostOf(r gauge.Reading, processes int) Cost {
	n := max(1, m.operations())
	c := Cost{
		User: micros(r.User) / n, System: micros(r.System) / n, Allocations: float64(r.Allocations) / n,
		Packets: float64(r.Packets()) / n, Calls: float64(r.Calls()) / n, CallsKnown: r.Calls() > 0,
	}
	if processes > 0 {
		c.PerChunk = c.Allocations / float64(processes*timing.Chunks(m.Bytes))
	}
	if mib := float64(m.Bytes) * float64(m.Ranks) * n / (1 << 20); mib > 0 {
		c.PacketsPerMiB, c.CallsPerMiB = float64(r.Packets())/mib, float64(r.Calls())/mib
	}
	return c
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// HostCost returns the hosts' part. All members of all groups are its processes.
func (m *Measurement) HostCost() Cost { return m.CostOf(m.Hosts, m.Ranks*max(1, m.Groups)) }

// SwitchCost returns the switches' part.
func (m *Measurement) SwitchCost() Cost { return m.CostOf(m.Switches, m.Fabric.Switches) }

// String returns m as a line of CSV. What is not known is empty.
func (m *Measurement) String() string {
	h, s, n := m.HostCost(), m.SwitchCost(), max(1, m.operations())
	cells := []string{
		m.Row.String(), fmt.Sprint(m.Group), tenths(h.User), tenths(h.System), tenths(s.User), tenths(s.System),
		tenths(micros(m.Machine.Soft) / n), tenths(micros(m.Machine.Idle) / n),
		tenths(h.Allocations), tenths(s.Allocations), fmt.Sprintf("%.4f", h.PerChunk), fmt.Sprintf("%.4f", s.PerChunk),
		tenths(h.PacketsPerMiB), tenths(s.PacketsPerMiB), h.calls(), s.calls(),
	}
	return strings.Join(cells, ",")
}

func tenths(x float64) string { return fmt.Sprintf("%.1f", x) }

func (c Cost) calls() string {
	if !c.CallsKnown {
		return ""
	}
	return tenths(c.CallsPerMiB)
}

// few is the size of vectors below which what is counted is reported by the
// operation, and not by the MiB.
const few = 64 << 10

// packets reports those of hosts and of switches.
func (m *Measurement) packets() string {
	h, s := m.HostCost(), m.SwitchCost()
	if m.Bytes < few {
		return fmt.Sprintf("%.0f, %.0f an operation", h.Packets, s.Packets)
	}
	return fmt.Sprintf("%.0f, %.0f a MiB", h.PacketsPerMiB, s.PacketsPerMiB)
}

// calls reports the system calls of hosts and of switches.
func (m *Measurement) calls() string {
	reported := func(c Cost) string {
		switch {
		case !c.CallsKnown:
			return "?"
		case m.Bytes < few:
			return fmt.Sprintf("%.0f", c.Calls)
		}
		return fmt.Sprintf("%.0f", c.CallsPerMiB)
	}
	unit := "a MiB"
	if m.Bytes < few {
		unit = "an operation"
	}
	return reported(m.HostCost()) + ", " + reported(m.SwitchCost()) + " " + unit
}

// Strangers returns the share of the processors, at the least, that processes
// had which are neither hosts nor switches: the manager, collbench, and what
// else ran on the machine, which disturbs a measurement. What the kernel did for
// packets that arrived counts for nobody, and is in the time of hosts and
// switches where it interrupted these.
func (m *Measurement) Strangers() float64 {
	busy := m.Machine.User + m.Machine.System
	whole := busy + m.Machine.Soft + m.Machine.Hard + m.Machine.Idle + m.Machine.Stolen
	if whole <= 0 || m.BesideTCP { // the stream's time is not reported
		return 0
	}
	return max(0, float64(busy-m.Hosts.Processor()-m.Switches.Processor())/float64(whole))
}

// disturbed is the share of the processors from which on strangers are reported,
// in measurements of at least that time.
const (
	disturbed     = 0.05
	disturbedTime = time.Second
)

// Words returns what m cost in lines of English.
func (m *Measurement) Words() string {
	h, s, n := m.HostCost(), m.SwitchCost(), max(1, m.operations())
	var b strings.Builder
	fmt.Fprintf(&b, "  tail: median %.0f us, 90 %% %.0f, 99 %% %.0f, 99.9 %% %.0f, most %.0f; the 99th is %.1f medians\n",
		m.Median, m.P90, m.P99, m.P999, m.Max, ratio(m.P99, m.Median))
	fmt.Fprintf(&b, "  processor time an operation: hosts %.0f us (%.0f in the kernel), switches %.0f us (%.0f); softirq of the machine %.0f us, idle %.0f us\n",
		h.User+h.System, h.System, s.User+s.System, s.System, micros(m.Machine.Soft)/n, micros(m.Machine.Idle)/n)
	fmt.Fprintf(&b, "  allocations an operation: hosts %.1f (%.4f a chunk and host), switches %.1f (%.4f a chunk and switch)\n",
		h.Allocations, h.PerChunk, s.Allocations, s.PerChunk)
	if x := m.Strangers(); x > disturbed && m.Elapsed >= disturbedTime {
		fmt.Fprintf(&b, "  DISTURBED: others had %.0f %% of the processors meanwhile\n", 100*x)
	}
	fmt.Fprintf(&b, "  of hosts, of switches: packets %s; system calls %s\n", m.packets(), m.calls())
	return b.String()
}

// ratio returns x of y; 0: y is nothing.
func ratio(x, y float64) float64 {
	if y == 0 {
		return 0
	}
	return x / y
}
