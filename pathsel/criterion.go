package pathsel

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Criterion is what a tree is chosen by. Where two trees are equal by it, the
// fewest hops, the least depth and the least present use decide, in this order,
// and at last a hash of the group.
type Criterion uint8

// The criteria.
const (
	// ByFunction lets the collective and the bytes of a vector decide: see
	// Purpose.Decide.
	ByFunction Criterion = iota
	// FewestHops: links used, each counted once, so the least traffic.
	FewestHops
	// LeastLatency: the time from the furthest member to the root.
	LeastLatency
	// WidestLink: the most bandwidth on the narrowest link, what is measured to
	// be in use taken off and the rest divided among the trees there.
	WidestLink
	// LeastLoad: the least price of links, switch CPUs and slots by their
	// present use; see docs/planning.md.
	LeastLoad
	// MostCapable: the least share of its free slots and of its children that
	// any switch gives to the tree, so that room is left everywhere.
	MostCapable

	criteria

	bySpeed = criteria // of the slowest switch: see levelwise.fastest
)

var criterionNames = [criteria]string{"auto", "hops", "latency", "bandwidth", "load", "capability"}

// String returns the criterion's name.
func (c Criterion) String() string { return nameOf(c, criterionNames[:], "criterion") }

// nameOf returns the name of one of several, such as "criterion(9)" where it has none.
func nameOf[T ~uint8](x T, names []string, what string) string {
	if int(x) < len(names) {
		return names[x]
	}
	return fmt.Sprintf("%s(%d)", what, uint8(x))
}

// named returns the one of that name.
func named[T ~uint8](name string, names []string, what string) (T, error) {
	if i := slices.Index(names, name); i >= 0 {
		return T(i), nil
	}
	return 0, fmt.Errorf("%w: %s %q is none of %s", ErrRequest, what, name, strings.Join(names, ", "))
}

// ParseCriterion returns the criterion of that name.
func ParseCriterion(name string) (Criterion, error) {
	return named[Criterion](name, criterionNames[:], "criterion")
}

// Weights say how much each criterion counts, by Criterion; ByFunction has
// none. A tree's score is the sum, over the criteria, of its weight times how
// many times worse than the best candidate the tree is by it; the least wins.
type Weights [criteria]float64

// given reports whether any weight is above zero.
func (w Weights) given() bool { return w != Weights{} }

// Validate reports a weight that is negative or not a number.
func (w Weights) Validate() error {
	for c, x := range w {
		if !(x >= 0 && x <= 1e9) || Criterion(c) == ByFunction && x != 0 {
			return fmt.Errorf("%w: weight %v of %v is not within 0 and 1e9", ErrRequest, x, Criterion(c))
		}
	}
	return nil
}

// ParseWeights reads weights such as "hops=1,load=2.5".
func ParseWeights(text string) (Weights, error) {
	var w Weights
	for _, part := range strings.Split(text, ",") {
		name, number, ok := strings.Cut(part, "=")
		c, err := ParseCriterion(strings.TrimSpace(name))
		if err != nil {
			return w, err
		}
		var x float64
		if n, scanErr := fmt.Sscanf(number+"\n", "%g\n", &x); !ok || n != 1 || scanErr != nil || c == ByFunction {
			return w, fmt.Errorf("%w: %q is no weight such as hops=2", ErrRequest, part)
		}
		w[c] = x
	}
	return w, w.Validate()
}

// Collective is what a group does with its vectors.
type Collective uint8

// The collectives. AnyCollective is a group of which nothing is known.
const (
	AnyCollective Collective = iota
	Allreduce
	Reduce
	Broadcast
	Barrier
	Gather
	Scatter
	AllToAll

	collectives
)

var collectiveNames = [collectives]string{"any", "allreduce", "reduce", "broadcast", "barrier", "gather", "scatter", "all-to-all"}

// String returns the collective's name.
func (c Collective) String() string { return nameOf(c, collectiveNames[:], "collective") }

// ParseCollective returns the collective of that name.
func ParseCollective(name string) (Collective, error) {
	return named[Collective](name, collectiveNames[:], "collective")
}

// Reduces reports whether vectors become one on their way; of the others a
// switch lessens the messages, and not the bytes.
func (c Collective) Reduces() bool { return c == Allreduce || c == Reduce || c == AnyCollective }

// Compare orders two trees' figures by a criterion, the better first. Nothing
// is said of their roots; ByFunction counts as FewestHops.
func (f Figures) Compare(g Figures, by Criterion) int {
	first := 0
	switch by {
	case LeastLatency:
		first = cmp.Compare(f.Latency, g.Latency)
	case WidestLink:
		first = cmp.Compare(g.Bandwidth, f.Bandwidth)
	case LeastLoad:
		first = cmp.Compare(f.Price, g.Price)
	case MostCapable:
		first = cmp.Compare(f.Share, g.Share)
	}
	return cmp.Or(first, cmp.Compare(f.Hops, g.Hops), cmp.Compare(f.Depth, g.Depth), cmp.Compare(f.Use, g.Use))
}
