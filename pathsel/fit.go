package pathsel

import (
	"fmt"
	"math"
	"time"
)

// Measured is one measurement to fit a Model to.
type Measured struct {
	Trip           // what was measured
	OverHosts bool // and not over switches
	Took      time.Duration
}

// Fitted is a model and how well it fits.
type Fitted struct {
	Model
	Rows  int
	Worst float64 // the largest relative error of a prediction, 0.1 being 10 %
	Mean  float64 // their mean
}

// The unknowns of a fit: both times in seconds, both speeds as seconds a byte.
const (
	hostMessage = iota
	switchHop
	switchReduce
	hostReduce
	unknowns
)

// Fit returns the model, of the same Bandwidth and Hop as base, that predicts
// the rows with the least sum of squared relative errors, no time or speed
// being negative. hops are the switches on the way that each row's latency
// counts with base.SwitchHop; that share of it is fitted anew. What no row says
// anything of stays as in base: the speed of hosts, for example, where only
// switches were measured, or where all rows have speeds of their own (Trip.Reduce,
// Trip.HostReduce).
func Fit(base Model, hops []int, rows []Measured) (Fitted, error) {
	if err := base.Validate(); err != nil {
		return Fitted{}, fmt.Errorf("fit model: %w", err)
	}
	if len(rows) == 0 || len(hops) != len(rows) {
		return Fitted{}, fmt.Errorf("fit model: %w: %d rows with the hops of %d", ErrModel, len(rows), len(hops))
	}
	standing := [unknowns]float64{
		base.HostMessage.Seconds(), base.SwitchHop.Seconds(), 1 / base.SwitchReduce, 1 / base.HostReduce,
	}
	normal, x := newNormal(unknowns), standing[:]
	for i, r := range rows {
		if r.Took <= 0 || r.Members < 2 || r.Bytes < 0 || r.Bandwidth <= 0 || hops[i] < 0 {
			return Fitted{}, fmt.Errorf("fit model: %w: row %d has no time, members, bytes or bandwidth", ErrModel, i)
		}
		row, known := r.equation(base, hops[i])
		normal.add(row[:], r.Took.Seconds()-known, 1/(r.Took.Seconds()*r.Took.Seconds()))
	}
	var from, to [unknowns]float64
	for i := range to {
		to[i] = math.Inf(1)
	}
	normal.solveWithin(x, from[:], to[:])
	f := Fitted{Model: base, Rows: len(rows)}
	f.HostMessage, f.SwitchHop = seconds(x[hostMessage]), seconds(x[switchHop])
	f.SwitchReduce, f.HostReduce = 1/math.Max(x[switchReduce], 1e-18), 1/math.Max(x[hostReduce], 1e-18)
	for i, r := range rows {
		r.Latency += time.Duration(hops[i]) * (f.SwitchHop - base.SwitchHop)
		says := f.Switches(r.Trip)
		if r.OverHosts {
			says = f.Hosts(r.Trip)
		}
		off := math.Abs(says.Seconds()/r.Took.Seconds() - 1)
		f.Worst, f.Mean = math.Max(f.Worst, off), f.Mean+off/float64(len(rows))
	}
	return f, nil
}

// equation returns what the row's time has of each unknown, and what is known
// of it.
func (r Measured) equation(base Model, hops int) (row [unknowns]float64, known float64) {
	ways, reduces := r.Collective.ways()
	wire := (r.Latency - time.Duration(hops)*base.SwitchHop).Seconds()
	bytes := float64(r.pieces())
	per := 8 / float64(r.Bandwidth)
	if !r.OverHosts {
		row[hostMessage], row[switchHop] = ways, ways*float64(hops)
		switch {
		case reduces && r.Reduce > 0:
			per += 1 / r.Reduce
		case reduces:
			row[switchReduce] = bytes * float64(r.Children)
		}
		return row, ways*(wire+r.Packet.Seconds()) + bytes*per
	}
	rounds := float64(Rounds(r.Members))
	fan := math.Min(rounds, r.fan())
	row[hostMessage], row[switchHop] = ways*rounds, 2*ways*rounds*float64(hops)
	switch {
	case reduces && r.HostReduce > 0:
		per += 1 / r.HostReduce
	case reduces:
		row[hostReduce] = bytes * fan
	}
	return row, 2*ways*rounds*wire + bytes*fan*per
}

// normal are normal equations: a row for each unknown, whose last number is the right side.
type normal [][]float64

func newNormal(unknowns int) normal {
	n := make(normal, unknowns)
	for i := range n {
		n[i] = make([]float64, unknowns+1)
	}
	return n
}

// add adds an equation.
func (n normal) add(row []float64, want, weight float64) {
	for a := range row {
		for b := range row {
			n[a][b] += weight * row[a] * row[b]
		}
		n[a][len(n)] += weight * row[a] * want
	}
}

// solveWithin finds the least squares, each unknown being within bounds:
// one unknown after the other takes what is best beside the others, until none moves
// (Franc, Hlaváč and Navara: Sequential coordinate-wise algorithm for the non-negative
// least squares problem, CAIP 2005). What no row has any of stays as it stands.
func (n normal) solveWithin(x, from, to []float64) {
	const rounds, still = 1 << 20, 1e-12 // still: of a relative error
	for moved, round := 1.0, 0; moved > still && round < rounds; round++ {
		moved = 0
		for a, row := range n {
			if row[a] == 0 {
				continue
			}
			rest := row[len(n)]
			for b := range x {
				if b != a {
					rest -= row[b] * x[b]
				}
			}
			best := min(max(rest/row[a], from[a]), to[a])
			moved = max(moved, math.Abs(best-x[a])*math.Sqrt(row[a]))
			x[a] = best
		}
	}
}
