package pathsel

import (
	"fmt"
	"iter"
	"time"
)

// Term is a part of the time of a collective: what a way of doing it needs of something, times what
// one of that costs.
type Term uint8

// The terms. A busiest member, or link, is that which has most of it.
const (
	Start          Term = iota // the operation: 1
	Step                       // messages that wait for each other, on the longest way
	Rendezvous                 // of these, those that wait for their receiver before they are sent
	Message                    // messages that the busiest member sends, or receives
	Peer                       // members that the busiest member exchanges messages with
	EachMessage                // messages of all members
	EachRendezvous             // of these, those that wait for their receiver
	Link                       // MiB over the busiest member's link, in the busier direction
	Traffic                    // MiB that all members send
	Local                      // MiB that the busiest member reduces or copies
	Burst                      // MiB that the busiest member sends, or receives, at once, at most
	Terms
)

var termNames = [Terms]string{
	"start", "step", "rendezvous", "message", "peer", "each_message", "each_rendezvous", "link", "traffic", "local", "burst",
}

// String returns the term's name in files.
func (t Term) String() string {
	if t >= Terms {
		return fmt.Sprintf("term(%d)", uint8(t))
	}
	return termNames[t]
}

// Work is what a way of doing a collective needs, by Term.
type Work [Terms]float64

// Rates are what one of each Term costs. Where many hosts share processors, what all members do
// costs time; where each has its own, what the busiest does.
type Rates [Terms]time.Duration

// Time returns how long work takes.
func (r *Rates) Time(w *Work) time.Duration {
	sum := 0.0
	for i := range w {
		sum += w[i] * float64(r[i])
	}
	return time.Duration(min(sum, float64(time.Hour)*1e5))
}

// Kind is a kind of ways, which have Rates of their own.
type Kind uint8

// The kinds.
const (
	ByMessages Kind = iota // an algorithm of hosts, by messages between any two members
	ByHostTree             // packets along the communicator's tree of hosts
	BySwitches             // packets along its tree of switches
	Kinds
)

var kindNames = [Kinds]string{"messages", "host_tree", "switches"}

// String returns the kind's name in files.
func (k Kind) String() string {
	if k >= Kinds {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// Family is a collective, with its form in v, or exclusive: it has Rates of its own, since what a
// term costs depends on what else goes on at once.
type Family uint8

// The families.
const (
	OfAllreduce Family = iota
	OfReduce
	OfBroadcast
	OfBarrier
	OfGather
	OfScatter
	OfAllgather
	OfAlltoall
	OfReduceScatter
	OfScan
	Families
)

var familyNames = [Families]string{
	"allreduce", "reduce", "broadcast", "barrier", "gather", "scatter", "allgather", "alltoall", "reduce-scatter", "scan",
}

// String returns the family's name in files.
func (f Family) String() string {
	if f >= Families {
		return fmt.Sprintf("family(%d)", uint8(f))
	}
	return familyNames[f]
}

// Costs are what members choose the way of a collective by.
type Costs [Families][Kinds]Rates

// All returns each rate and its name, such as "allreduce.messages.step".
func (c *Costs) All() iter.Seq2[string, *time.Duration] {
	return func(yield func(string, *time.Duration) bool) {
		for f := range c {
			for k := range c[f] {
				for t := range c[f][k] {
					if !yield(fmt.Sprintf("%s.%s.%s", Family(f), Kind(k), Term(t)), &c[f][k][t]) {
						return
					}
				}
			}
		}
	}
}

// Time returns how long work takes.
func (c *Costs) Time(f Family, k Kind, w *Work) time.Duration { return c[f][k].Time(w) }

// DefaultCosts returns those of hosts in network namespaces of one machine with two processors, by
// measurement. They are not to be changed.
func DefaultCosts() *Costs { return &defaultCosts }

// Validate reports what is out of range: each rate is 0 to an hour.
func (c *Costs) Validate() error {
	for f := range c {
		for k := range c[f] {
			for t, d := range c[f][k] {
				if d < 0 || d > time.Hour {
					return fmt.Errorf("%w: costs.%s.%s.%s of %v is not within 0 and 1h", ErrModel, Family(f), Kind(k), Term(t), d)
				}
			}
		}
	}
	return nil
}

// Timed is a measurement to fit Costs to.
type Timed struct {
	Family Family
	Kind   Kind
	Work   Work
	Took   time.Duration
}

// FittedCosts are costs and how well they fit.
type FittedCosts struct {
	Costs
	Rows        int
	Mean, Worst float64 // relative errors of predictions, 0.1 being 10 %
}

// FitCosts returns the costs that predict the rows with the least sum of squared relative errors,
// none being negative. What no row says anything of stays as in base.
func FitCosts(base *Costs, rows []Timed) (FittedCosts, error) {
	fit := FittedCosts{Costs: *base, Rows: len(rows)}
	if err := base.Validate(); err != nil {
		return fit, fmt.Errorf("fit costs: %w", err)
	}
	var all [Families][Kinds]normal
	for i, r := range rows {
		if r.Took <= 0 || r.Kind >= Kinds || r.Family >= Families {
			return fit, fmt.Errorf("fit costs: %w: row %d has no time, or no kind or family", ErrModel, i)
		}
		n := &all[r.Family][r.Kind]
		if *n == nil {
			*n = newNormal(int(Terms))
		}
		n.add(r.Work[:], r.Took.Seconds(), 1/(r.Took.Seconds()*r.Took.Seconds()))
	}
	for f := range all {
		for k, n := range all[f] {
			if n == nil {
				continue
			}
			x := make([]float64, Terms)
			for t, d := range base[f][k] {
				x[t] = d.Seconds()
			}
			n.solveWithin(x)
			for t := range x {
				fit.Costs[f][k][t] = seconds(x[t])
			}
		}
	}
	for _, r := range rows {
		off := fit.Time(r.Family, r.Kind, &r.Work).Seconds()/r.Took.Seconds() - 1
		fit.Worst, fit.Mean = max(fit.Worst, off, -off), fit.Mean+max(off, -off)/float64(len(rows))
	}
	return fit, nil
}
