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
// switches were measured.
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
	var normal [unknowns][unknowns + 1]float64
	for i, r := range rows {
		if r.Took <= 0 || r.Members < 2 || r.Bytes < 0 || r.Bandwidth <= 0 || hops[i] < 0 {
			return Fitted{}, fmt.Errorf("fit model: %w: row %d has no time, members, bytes or bandwidth", ErrModel, i)
		}
		row, known := r.equation(base, hops[i])
		want := r.Took.Seconds() - known
		weight := 1 / (r.Took.Seconds() * r.Took.Seconds())
		for a := range row {
			for b := range row {
				normal[a][b] += weight * row[a] * row[b]
			}
			normal[a][unknowns] += weight * row[a] * want
		}
	}
	x := solveWithin(normal, standing)
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
		if reduces {
			row[switchReduce] = bytes * float64(r.Children)
		}
		return row, ways*wire + bytes*per
	}
	rounds := float64(Rounds(r.Members))
	fan := math.Min(rounds, r.fan())
	row[hostMessage], row[switchHop] = ways*rounds, 2*ways*rounds*float64(hops)
	if reduces {
		row[hostReduce] = bytes * fan
	}
	return row, 2*ways*rounds*wire + bytes*fan*per
}

// solveWithin solves the normal equations for what they determine, nothing
// below zero: every set of unknowns that stay at zero is tried (there are 16),
// and the one with the least squares taken. What no row has any of stays as it
// stands.
func solveWithin(normal [unknowns][unknowns + 1]float64, standing [unknowns]float64) [unknowns]float64 {
	best, bestOff := standing, math.Inf(1)
	for zero := range 1 << unknowns {
		x, ok := solveBut(normal, standing, zero)
		if !ok {
			continue
		}
		off := 0.0
		for a := range unknowns {
			for b := range unknowns {
				off += x[a] * normal[a][b] * x[b]
			}
			off -= 2 * x[a] * normal[a][unknowns]
		}
		if off < bestOff {
			best, bestOff = x, off
		}
	}
	return best
}

// solveBut solves them with the unknowns in the set zero at zero, by Gauss's
// elimination, and reports whether no other is negative.
func solveBut(m [unknowns][unknowns + 1]float64, standing [unknowns]float64, zero int) (x [unknowns]float64, ok bool) {
	var free, scale [unknowns]float64
	for a := range unknowns {
		scale[a] = math.Sqrt(m[a][a])
		if m[a][a] > 0 && zero>>a&1 == 0 {
			free[a] = 1
		} else if m[a][a] == 0 {
			x[a] = standing[a]
		}
	}
	for a := range unknowns {
		if free[a] == 0 {
			m[a] = [unknowns + 1]float64{}
			m[a][a] = 1
			continue
		}
		for b := range unknowns {
			m[a][b] *= free[b] / scale[a] / math.Max(scale[b], 1e-300)
		}
		m[a][unknowns] /= scale[a]
	}
	for a := range unknowns {
		pivot := a
		for b := a + 1; b < unknowns; b++ {
			if math.Abs(m[b][a]) > math.Abs(m[pivot][a]) {
				pivot = b
			}
		}
		m[a], m[pivot] = m[pivot], m[a]
		if math.Abs(m[a][a]) < 1e-9 {
			return x, false // the rows do not distinguish these
		}
		for b := range unknowns {
			if b == a {
				continue
			}
			by := m[b][a] / m[a][a]
			for c := a; c <= unknowns; c++ {
				m[b][c] -= by * m[a][c]
			}
		}
	}
	for a := range unknowns {
		if free[a] == 0 {
			continue
		}
		if x[a] = m[a][unknowns] / m[a][a] / scale[a]; x[a] < 0 {
			return x, false
		}
	}
	return x, true
}
