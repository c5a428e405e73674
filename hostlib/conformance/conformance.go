package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/reduce"
)

// Config selects cases. All members give the same.
type Config struct {
	// Collectives are the names of those that are tested ("allgatherv"); all by default.
	Collectives []string
	// Functions and Types are those of reductions; all by default.
	Functions []reduce.Function
	Types     []reduce.Type
	// Counts are the elements of vectors, or of each member's piece; DefaultCounts by default.
	Counts []int
	// Roots are the roots of rooted collectives; by default the first, the last, and one between.
	Roots []int
	// OnCase is called before each case, if it is not nil, and OnOutcome after it.
	OnCase    func(Case)
	OnOutcome func(Case, hostlib.Outcome)
}

// DefaultCounts are no elements, one, an odd number, and more than a packet has.
func DefaultCounts() []int { return []int{0, 1, 13, 5000} }

// Case is one operation of the test.
type Case struct {
	Collective string
	Function   reduce.Function // NoFunction: nothing is reduced
	Type       reduce.Type
	Count      int
	Root       int
	InPlace    bool
}

// String describes the case.
func (c Case) String() string {
	s := c.Collective
	if c.Function != reduce.NoFunction {
		s += " by " + c.Function.String()
	}
	s += fmt.Sprintf(" of %d %s, root %d", c.Count, c.Type, c.Root)
	if c.InPlace {
		s += ", in place"
	}
	return s
}

// Result counts what was done, at this member.
type Result struct {
	Cases      int
	Transports map[hostlib.Transport]int
	Algorithms map[hostlib.Algorithm]int // of those by hosts
}

// ErrWrong is wrapped by the errors of results that are not the oracle's.
var ErrWrong = errors.New("conformance: wrong result")

// Names returns the collectives that are tested.
func Names() (all []string) {
	for _, f := range families[int32]() {
		all = append(all, f.name)
	}
	return all
}

// run is one call of Run.
type run struct {
	Config
	ctx    context.Context
	comm   *hostlib.Communicator
	result Result
	number uint64 // of the case, in all
}

// Run tests a communicator's collectives, and returns the first error: of an operation, or of a
// result, which wraps ErrWrong and names the case.
func Run(ctx context.Context, comm *hostlib.Communicator, cfg Config) (Result, error) {
	r := &run{Config: cfg, ctx: ctx, comm: comm}
	r.result.Transports, r.result.Algorithms = map[hostlib.Transport]int{}, map[hostlib.Algorithm]int{}
	if r.Counts == nil {
		r.Counts = DefaultCounts()
	}
	if r.Roots == nil {
		n := comm.Size()
		r.Roots = slices.Compact([]int{0, n / 2, n - 1})
	}
	if unknown := slices.DeleteFunc(slices.Clone(r.Collectives), func(name string) bool { return slices.Contains(Names(), name) }); len(unknown) > 0 {
		return r.result, fmt.Errorf("conformance: no collective %q, want one of %s", unknown[0], strings.Join(Names(), ", "))
	}
	for _, each := range []func(*run) error{each[int32], each[int64], each[uint32], each[uint64], each[float32], each[float64], each[reduce.F16], each[reduce.BF16]} {
		if err := each(r); err != nil {
			return r.result, err
		}
	}
	return r.result, nil
}

// each tests all with elements of T.
func each[T reduce.Element](r *run) error {
	t := reduce.TypeOf[T]()
	if len(r.Types) > 0 && !slices.Contains(r.Types, t) {
		return nil
	}
	for _, f := range families[T]() {
		if len(r.Collectives) > 0 && !slices.Contains(r.Collectives, f.name) {
			continue
		}
		for _, c := range r.cases(f.name, f.reduces, f.isRooted, !f.neverInPlace, t) {
			if f.name == "barrier" && (c.Count != r.Counts[0] || c.InPlace) {
				continue
			}
			r.number++
			if r.OnCase != nil {
				r.OnCase(c)
			}
			x := &trial[T]{run: r, Case: c}
			outcome, err := f.do(x)
			if err != nil {
				return fmt.Errorf("conformance: rank %d, %s: %w", r.comm.Rank(), c, err)
			}
			if r.OnOutcome != nil {
				r.OnOutcome(c, outcome)
			}
			r.result.Cases++
			r.result.Transports[outcome.Transport]++
			if outcome.Transport == hostlib.Hosts {
				r.result.Algorithms[outcome.Algorithm]++
			}
		}
	}
	return nil
}

// cases returns those of a collective.
func (r *run) cases(name string, reduces, isRooted, hasInPlace bool, t reduce.Type) (all []Case) {
	functions := []reduce.Function{reduce.NoFunction}
	if reduces {
		functions = nil
		for f := reduce.Sum; f <= reduce.MaxLoc; f++ {
			if f.Located() && name != "allreduce" && name != "reduce" {
				continue
			}
			if reduce.Defined(f, t) && (len(r.Functions) == 0 || slices.Contains(r.Functions, f)) {
				functions = append(functions, f)
			}
		}
	}
	roots := []int{0}
	if isRooted {
		roots = r.Roots
	}
	for _, f := range functions {
		for _, n := range r.Counts {
			for _, root := range roots {
				all = append(all, Case{name, f, t, n, root, false})
				if hasInPlace {
					all = append(all, Case{name, f, t, n, root, true})
				}
			}
		}
	}
	return all
}
