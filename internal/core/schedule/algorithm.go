package schedule

import "fmt"

// Algorithm is a way to do a collective on hosts. Its values are part of what members agree upon,
// and never change.
type Algorithm uint8

// The algorithms. Auto is Choose's.
const (
	Auto Algorithm = iota
	Linear
	Binomial
	Chain
	Ring
	RecursiveDoubling
	Rabenseifner
	Halving
	Bruck
	Pairwise
	ScatterAllgather
	RingGather
	Dissemination
	Algorithms
)

var algorithmNames = [Algorithms]string{
	"auto", "linear", "binomial", "chain", "ring", "recursive-doubling", "rabenseifner", "halving", "bruck", "pairwise",
	"scatter-allgather", "ring-gather", "dissemination",
}

// String returns the name.
func (a Algorithm) String() string {
	if a >= Algorithms {
		return fmt.Sprintf("algorithm(%d)", uint8(a))
	}
	return algorithmNames[a]
}

// ParseAlgorithm returns the algorithm of a name.
func ParseAlgorithm(name string) (Algorithm, error) {
	for a, n := range algorithmNames {
		if n == name {
			return Algorithm(a), nil
		}
	}
	return 0, fmt.Errorf("no algorithm %q, want one of %q", name, algorithmNames)
}

// way is an algorithm of some collectives.
type way struct {
	algorithm Algorithm
	make      func(*Call) Schedule
	unordered bool // does not keep the order of ranks
	power     bool // takes powers of two alone
	byRank    bool // has pieces of several ranks in a row, or has nothing to gain: Call.Order does not matter
}

var (
	scans    = []way{{algorithm: RecursiveDoubling, make: scanDoubling, byRank: true}, {algorithm: Chain, make: scanChain, byRank: true}}
	scatters = []way{
		{algorithm: Pairwise, make: reduceScatterPairwise, unordered: true}, {algorithm: Ring, make: reduceScatterRing, unordered: true},
		{algorithm: Halving, make: reduceScatterHalving, power: true}, {algorithm: Linear, make: reduceScatterLinear, byRank: true},
	}
)

// ways are the algorithms of each collective.
var ways = [Collectives][]way{
	Allreduce: {
		{algorithm: RecursiveDoubling, make: allreduceDoubling}, {algorithm: Rabenseifner, make: allreduceRabenseifner},
		{algorithm: Ring, make: allreduceRing, unordered: true}, {algorithm: Linear, make: allreduceLinear}, {algorithm: Binomial, make: allreduceBinomial},
	},
	Reduce:    {{algorithm: Binomial, make: reduceBinomial}, {algorithm: RingGather, make: reduceRingGather, unordered: true}},
	Broadcast: {{algorithm: Binomial, make: broadcastBinomial}, {algorithm: ScatterAllgather, make: broadcastScatter}, {algorithm: Chain, make: broadcastChain}},
	Barrier: {
		{algorithm: Dissemination, make: barrierDissemination}, {algorithm: Linear, make: allreduceLinear}, {algorithm: Binomial, make: allreduceBinomial},
	},
	Gather:   {{algorithm: Binomial, make: gatherBinomial, byRank: true}, {algorithm: Linear, make: gatherLinear, byRank: true}},
	Gatherv:  {{algorithm: Linear, make: gatherLinear, byRank: true}},
	Scatter:  {{algorithm: Binomial, make: scatterBinomial, byRank: true}, {algorithm: Linear, make: scatterLinear, byRank: true}},
	Scatterv: {{algorithm: Linear, make: scatterLinear, byRank: true}},
	Allgather: {
		{algorithm: Bruck, make: allgatherBruck, byRank: true}, {algorithm: Ring, make: allgatherRing}, {algorithm: Linear, make: allgatherLinear, byRank: true},
		{algorithm: RecursiveDoubling, make: allgatherDoubling, power: true, byRank: true},
	},
	Allgatherv:     {{algorithm: Ring, make: allgatherRing}, {algorithm: Linear, make: allgatherLinear, byRank: true}},
	Alltoall:       {{algorithm: Bruck, make: alltoallBruck, byRank: true}, {algorithm: Pairwise, make: alltoallPairwise, byRank: true}, {algorithm: Linear, make: alltoallLinear, byRank: true}},
	Alltoallv:      {{algorithm: Pairwise, make: alltoallPairwise, byRank: true}, {algorithm: Linear, make: alltoallLinear, byRank: true}},
	ReduceScatter:  scatters,
	ReduceScatterv: scatters,
	Scan:           scans,
	Exscan:         scans,
}

// find returns the way of an algorithm, if it can do a call.
func (c *Call) find(a Algorithm) (*way, error) {
	if c.Collective >= Collectives {
		return nil, fmt.Errorf("%w: %s", ErrCall, c.Collective)
	}
	var names []string
	for i := range ways[c.Collective] {
		w := &ways[c.Collective][i]
		if w.algorithm != a {
			names = append(names, w.algorithm.String())
			continue
		}
		switch {
		case w.unordered && c.Ordered:
			return nil, fmt.Errorf("%w: %s by %s of a function that does not commute", ErrCall, c.Collective, a)
		case w.power && c.Size&(c.Size-1) != 0:
			return nil, fmt.Errorf("%w: %s by %s in a group of %d, which is not a power of two", ErrCall, c.Collective, a, c.Size)
		}
		return w, nil
	}
	return nil, fmt.Errorf("%w: no %s by %s, but by %q", ErrCall, c.Collective, a, names)
}

// Make returns the schedule of a valid call by an algorithm, which is not Auto. The error wraps
// ErrCall, where the algorithm cannot do it.
func Make(c *Call, a Algorithm) (Schedule, error) {
	w, err := c.find(a)
	if err != nil {
		return Schedule{}, err
	}
	switch {
	case c.Order == nil:
	case w.byRank || c.Ordered:
		c = c.inRanks()
	default:
		c = c.inOrder()
	}
	return w.make(c), nil
}

// Can reports whether an algorithm can do a call.
func Can(c *Call, a Algorithm) bool {
	for i := range ways[c.Collective] {
		if w := &ways[c.Collective][i]; w.algorithm == a {
			return c.can(w)
		}
	}
	return false
}

// Possible returns the algorithms that can do a call.
func Possible(c *Call) (all []Algorithm) {
	for i, w := range ways[c.Collective] {
		if c.can(&ways[c.Collective][i]) {
			all = append(all, w.algorithm)
		}
	}
	return all
}

// AllOf returns the algorithms of a collective.
func AllOf(of Collective) (all []Algorithm) {
	for _, w := range ways[of] {
		all = append(all, w.algorithm)
	}
	return all
}

// Has reports whether an algorithm is one of a collective's.
func Has(of Collective, a Algorithm) bool {
	for _, w := range ways[of] {
		if w.algorithm == a {
			return true
		}
	}
	return false
}
