package pathsel

import (
	"fmt"
	"iter"
	"time"
)

// Term is a part of the time of a collective: what a way of doing it needs of something, times what
// one of that costs.
type Term uint8

// The terms.
const (
	Start      Term = iota // the operation: 1
	Step                   // messages that wait for each other, on the longest way
	Rendezvous             // of these, those that wait for their receiver before they are sent
	Message                // messages that a member sends, or receives
	Peer                   // members that a member exchanges messages with
	Link                   // MiB over a member's link, in the busier direction
	Local                  // MiB that a member reduces or copies
	Terms
)

var termNames = [Terms]string{"start", "step", "rendezvous", "message", "peer", "link", "local"}

// String returns the term's name in files.
func (t Term) String() string {
	if t >= Terms {
		return fmt.Sprintf("term(%d)", uint8(t))
	}
	return termNames[t]
}

// Work is what a way of doing a collective needs, by Term.
type Work struct {
	Busiest [Terms]float64 // at the member, or on the way, that has most
	All     [Terms]float64 // at all members together; 0: it does not add up, as latency does not
	// Far are those MiB of Busiest[Link] that every member sends at the time when all others do, to one
	// that is 2^i or more places away in the order by leaf, but not 2^(i+1).
	Far [MostFar]float64
}

// MostFar is more than the binary logarithm of any distance.
const MostFar = 24

// Shared returns how many of each term follow each other where all members share so many processors:
// those of the busiest member, or of a processor's share. 0: each member has its own.
func (w *Work) Shared(processors int) (n [Terms]float64) {
	if n = w.Busiest; processors > 0 {
		for i, all := range w.All {
			n[i] = max(n[i], all/float64(processors))
		}
	}
	return n
}

// Rates are what one of each Term costs.
type Rates [Terms]time.Duration

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
type Costs struct {
	Rates [Families][Kinds]Rates
	// Processors are those that all hosts share, as in namespaces of one machine; 0: each has its own.
	Processors int
	Links      Links // zero: as the manager has them, or unknown
}

// MaxProcessors is the most that Costs.Processors may be.
const MaxProcessors = 1 << 20

// All returns each rate and its name, such as "allreduce.messages.step".
func (c *Costs) All() iter.Seq2[string, *time.Duration] {
	return func(yield func(string, *time.Duration) bool) {
		for f := range c.Rates {
			for k := range c.Rates[f] {
				for t := range c.Rates[f][k] {
					if !yield(fmt.Sprintf("%s.%s.%s", Family(f), Kind(k), Term(t)), &c.Rates[f][k][t]) {
						return
					}
				}
			}
		}
	}
}

// Knows reports whether there are rates for a kind of ways of a collective. If not, Time returns 0.
func (c *Costs) Knows(f Family, k Kind) bool { return c.Rates[f][k] != Rates{} }

// Time returns how long work takes: the sum of what its terms cost. Bytes cost what processors need for
// them, or what the busiest member's take on its link, whichever is more.
func (c *Costs) Time(f Family, k Kind, w *Work) time.Duration {
	if !c.Knows(f, k) {
		return 0
	}
	n, sum := w.Shared(c.Processors), 0.0
	for t, rate := range c.Rates[f][k] {
		cost := n[t] * float64(rate)
		if Term(t) == Link {
			cost = max(cost, c.Links.take(w))
		}
		sum += cost
	}
	return time.Duration(min(sum, float64(time.Hour)*1e5))
}

// DefaultCosts returns those of hosts with processors of their own. What a processor needs for each
// term was measured in network namespaces. They are not to be changed.
func DefaultCosts() *Costs { return &defaultCosts }

// Validate reports what is out of range: each of Rates is 0 to an hour.
func (c *Costs) Validate() error {
	if c.Processors < 0 || c.Processors > MaxProcessors {
		return fmt.Errorf("%w: costs.processors of %d is not within 0 and %d", ErrModel, c.Processors, MaxProcessors)
	}
	if err := c.Links.Validate(); err != nil {
		return err
	}
	for name, d := range c.All() {
		if *d < 0 || *d > time.Hour {
			return fmt.Errorf("%w: costs.%s of %v is not within 0 and 1h", ErrModel, name, *d)
		}
	}
	return nil
}
