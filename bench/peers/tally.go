package peers

import (
	"time"

	"github.com/tributary-fabric/tributary/bench/report"
	"github.com/tributary-fabric/tributary/bench/timing"
	"github.com/tributary-fabric/tributary/bench/turn"
)

// tally is what a contestant has done in a row so far.
type tally struct {
	turns        int
	times        []float64 // microseconds
	user, system time.Duration
	switches     time.Duration
	operations   int // that the switches' time is of: those to warm up, too
	wrong        bool
	transport    string
}

// add counts a turn.
func (t *tally) add(o turn.Outcome, switches time.Duration, r turn.Request) {
	if t.turns > 0 && o.Transport != t.transport {
		o.Transport = "mixed"
	}
	t.turns++
	t.transport = o.Transport
	t.wrong = t.wrong || !o.Right
	t.times = append(t.times, micros(o.Times)...)
	t.user += o.User
	t.system += o.System
	t.switches += switches
	t.operations += r.Warmup + r.Iterations
}

// result returns what the turns have come to.
func (t *tally) result(name, left string) report.Contestant {
	c := report.Contestant{Name: name, Iterations: len(t.times), Left: left}
	if len(t.times) == 0 {
		return c
	}
	n := float64(len(t.times))
	c.Tail, c.Right = timing.TailOf(t.times), !t.wrong
	if t.transport != "-" {
		c.Transport = t.transport
	}
	c.User, c.System = inMicros(t.user)/n, inMicros(t.system)/n
	c.Switches = inMicros(t.switches) / float64(t.operations)
	return c
}

func inMicros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func micros(times []time.Duration) []float64 {
	all := make([]float64, len(times))
	for i, t := range times {
		all[i] = inMicros(t)
	}
	return all
}
