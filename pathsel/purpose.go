package pathsel

import (
	"errors"
	"fmt"
	"strings"
)

// Purpose is what a group is for, as far as it decides which tree is the best.
// The zero value is a group of which nothing is known.
type Purpose struct {
	// Collective is what the group mostly does, and Bytes how long its vectors
	// are; 0 where that is not known.
	Collective Collective
	Bytes      int64
	// Criterion is what to choose by. Weights, if any is above zero, stand in
	// its place.
	Criterion Criterion
	Weights   Weights
}

// Validate reports what is out of range, or a criterion beside weights. Its
// errors wrap ErrRequest.
func (p Purpose) Validate() error {
	switch {
	case p.Bytes < 0:
		return fmt.Errorf("%w: %d bytes a vector must not be negative", ErrRequest, p.Bytes)
	case p.Criterion >= criteria || p.Collective >= collectives:
		return fmt.Errorf("%w: there is no %v, or no %v", ErrRequest, p.Criterion, p.Collective)
	case p.Weights.given() && p.Criterion != ByFunction:
		return fmt.Errorf("%w: %w", ErrRequest, errWeights)
	}
	return p.Weights.Validate()
}

// Words says the purpose in words, such as "allreduce of 4096 bytes, by load".
func (p Purpose) Words() string {
	text := p.Collective.String()
	if p.Collective == AnyCollective {
		text = "any collective"
	}
	if p.Bytes > 0 {
		text += fmt.Sprintf(" of %d bytes", p.Bytes)
	}
	switch {
	case p.Weights.given():
		text += ", by " + p.Weights.String()
	case p.Criterion != ByFunction:
		text += ", by " + p.Criterion.String()
	}
	return text
}

// String writes weights as ParseWeights reads them.
func (w Weights) String() string {
	var parts []string
	for c, x := range w {
		if x != 0 {
			parts = append(parts, fmt.Sprintf("%v=%g", Criterion(c), x))
		}
	}
	return strings.Join(parts, ",")
}

var errWeights = errors.New("a criterion and weights are both given")

// Decide returns the criterion of a purpose and why it is that one: the one that is
// given, or else the least load. By default its tree is then, of those that the purpose
// bears (docs/planning.md), the one of the least price.
func (p Purpose) Decide(m Model) (Criterion, string) {
	if p.Criterion != ByFunction {
		return p.Criterion, "it was given"
	}
	return LeastLoad, "nothing else was asked for, " + p.bears(m)
}
