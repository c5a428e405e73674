package pathsel

import (
	"fmt"
	"math"
	"time"
)

// Timed is a measurement to fit Costs to.
type Timed struct {
	Family Family
	Kind   Kind
	Work   Work
	Took   time.Duration
	Links  Links // on which it was measured; zero: as fast as processors are
}

// FittedCosts are costs and how well they fit.
type FittedCosts struct {
	Costs
	Rows        int
	Mean, Worst float64 // relative errors of predictions, 0.1 being 10 %
}

// spread is how far the rates of a collective may be from those that fit all collectives best, as a
// factor. By each group size that was measured, some terms are multiples of others; a fit of one
// collective alone would give what all of them cost to any of these, and predict other group sizes
// by that. With a spread s, a way that is chosen takes at most s*s times what the best would by the
// rates of all collectives. A tree is one way of each collective, and wrong for none of its own kind.
var spread = [Kinds]float64{ByMessages: 1.5, ByHostTree: 4, BySwitches: 4}

// prior is as how many rows of a collective the rates of all count: one row that is off, as that of
// barriers may be, which have one length, says little.
const prior = 3

// least is what a term costs at least, also where processors that are shared hide it: a message over a
// cable, its share of a system call, a link of 1 Tbit/s, and copying at 50 GB/s.
var least = [Kinds]Rates{ByMessages: {Step: time.Microsecond, Message: 100 * time.Nanosecond, Link: 8400 * time.Nanosecond, Local: 20 * time.Microsecond}}

// terms returns how many of each term a row has, and the seconds that they took. Where links took most of
// the time, bytes say nothing of processors: what remains is that of the other terms.
func (r *Timed) terms(processors int) (n [Terms]float64, took float64) {
	n, took = r.Work.Shared(processors), r.Took.Seconds()
	if wire := r.Links.take(&r.Work) / 1e9; 2*wire > took {
		n[Link], took = 0, max(0, took-wire)
	}
	return n, took
}

// FitCosts returns the costs of hosts that share so many processors (0: each has its own) which predict
// the rows with the least sum of squared relative errors. Rates of one kind of ways are alike for all
// collectives, within a factor of 1.5, or 4 for trees, and the more so the fewer rows there are. What no row says anything of stays as in base.
func FitCosts(base *Costs, processors int, rows []Timed) (FittedCosts, error) {
	fit := FittedCosts{Costs: *base, Rows: len(rows)}
	fit.Processors = processors
	if err := fit.Validate(); err != nil {
		return fit, fmt.Errorf("fit costs: %w", err)
	}
	var all [Kinds]normal
	var each [Families][Kinds]normal
	var works [Families][Kinds][][Terms]float64
	var linked [Families][Kinds]bool // links took most of the time of a row
	for i := range rows {
		r := &rows[i]
		if r.Took <= 0 || r.Kind >= Kinds || r.Family >= Families {
			return fit, fmt.Errorf("fit costs: %w: row %d has no time, or no kind or family", ErrModel, i)
		}
		n, took := r.terms(processors)
		linked[r.Family][r.Kind] = linked[r.Family][r.Kind] || n[Link] < r.Work.Busiest[Link]
		works[r.Family][r.Kind] = append(works[r.Family][r.Kind], n)
		for _, equations := range []*normal{&all[r.Kind], &each[r.Family][r.Kind]} {
			if *equations == nil {
				*equations = newNormal(int(Terms))
			}
			equations.add(n[:], took, 1/(r.Took.Seconds()*r.Took.Seconds()))
		}
	}
	for k, together := range all {
		if together == nil {
			continue
		}
		var common, from, to [Terms]float64
		for t := range common {
			from[t], to[t] = least[k][t].Seconds(), math.Inf(1)
			common[t] = from[t]
		}
		together.solveWithin(common[:], from[:], to[:])
		for t := range common {
			from[t], to[t] = common[t]/spread[k], common[t]*spread[k]
		}
		for f := range each {
			if each[f][k] == nil {
				continue
			}
			var x [Terms]float64
			for t, d := range base.Rates[f][k] {
				x[t] = d.Seconds()
			}
			if linked[f][k] { // and perhaps no row says what a processor needs
				x[Link] = max(x[Link], from[Link])
			}
			own := &works[f][k]
			for i := range *own {
				n := &(*own)[i]
				took := 0.0
				for t := range n {
					took += n[t] * common[t]
				}
				if took > 0 {
					each[f][k].add(n[:], took, prior/(took*took*float64(len(*own))))
				}
			}
			each[f][k].solveWithin(x[:], from[:], to[:])
			for t := range x {
				fit.Rates[f][k][t] = seconds(x[t])
			}
		}
	}
	for i := range rows {
		r := &rows[i]
		at := Costs{Rates: fit.Rates, Processors: processors, Links: r.Links}
		off := at.Time(r.Family, r.Kind, &r.Work).Seconds()/r.Took.Seconds() - 1
		fit.Worst, fit.Mean = max(fit.Worst, off, -off), fit.Mean+max(off, -off)/float64(len(rows))
	}
	return fit, nil
}
