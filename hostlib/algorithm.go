package hostlib

import (
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core/schedule"
)

// Algorithm is a way to do a collective on hosts, by messages between members.
// docs/collectives.md says what each does, and which collective has which.
type Algorithm uint8

// The algorithms. AutoAlgorithm is the fastest by the cost model, for the number of members and the
// length.
const (
	AutoAlgorithm     = Algorithm(schedule.Auto)
	Linear            = Algorithm(schedule.Linear)
	Binomial          = Algorithm(schedule.Binomial)
	Chain             = Algorithm(schedule.Chain)
	Ring              = Algorithm(schedule.Ring)
	RecursiveDoubling = Algorithm(schedule.RecursiveDoubling)
	Rabenseifner      = Algorithm(schedule.Rabenseifner)
	Halving           = Algorithm(schedule.Halving)
	Bruck             = Algorithm(schedule.Bruck)
	Pairwise          = Algorithm(schedule.Pairwise)
	ScatterAllgather  = Algorithm(schedule.ScatterAllgather)
	RingGather        = Algorithm(schedule.RingGather)
	Dissemination     = Algorithm(schedule.Dissemination)
)

// String returns the name, "ring" for example.
func (a Algorithm) String() string { return schedule.Algorithm(a).String() }

// ParseAlgorithm returns the algorithm of a name. The error wraps ErrArgument.
func ParseAlgorithm(name string) (Algorithm, error) {
	a, err := schedule.ParseAlgorithm(name)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrArgument, err)
	}
	return Algorithm(a), nil
}

// Algorithms returns all, AutoAlgorithm first.
func Algorithms() (all []Algorithm) {
	for a := range schedule.Algorithms {
		all = append(all, Algorithm(a))
	}
	return all
}

// OnHosts has operations run on hosts by the first of these algorithms that can do them, also
// those that switches could reduce: allreduce, reduce, broadcast and barrier, which are otherwise
// run over the communicator's tree. None is AutoAlgorithm. An operation that none of them can do
// runs over the tree or, where there is no such way, by the fastest algorithm. It excludes Stripes
// and Roots.
func OnHosts(algorithms ...Algorithm) GroupOption {
	if len(algorithms) == 0 {
		algorithms = []Algorithm{AutoAlgorithm}
	}
	return func(t *groupOptions) { t.algorithms = slices.Clone(algorithms) }
}

// OnTreeOfHosts is OnTree without switches: the communicator takes no part at the manager.
func OnTreeOfHosts() GroupOption {
	return func(t *groupOptions) { t.onTree, t.noSwitches = true, true }
}

// algorithm returns that of a call, and why. Auto: it runs over the communicator's tree, which mayTree
// permits. Agreement is what comes before it, if anything.
func (c *Communicator) algorithm(k *schedule.Call, mayTree bool, agreement *schedule.Call) (schedule.Algorithm, choice) {
	for _, wanted := range c.options.algorithms {
		switch wanted := schedule.Algorithm(wanted); {
		case wanted == schedule.Auto:
			a, _ := schedule.Choose(k, c.policy().costs)
			return a, byCosts
		case schedule.Can(k, wanted):
			return wanted, asked
		}
	}
	if mayTree && (len(c.options.algorithms) > 0 || c.options.keepsTree() || c.processes != nil || c.sub.of != nil || k.Size == 1) {
		return schedule.Auto, asked
	}
	t, of := c.policy(), k.Collective.Family()
	if mayTree && t.isGuess(of) {
		return schedule.Auto, bySwitches
	}
	a, least := schedule.Choose(k, t.costs)
	if mayTree && agreement != nil {
		least += c.takes(t, agreement) - t.takes(agreement, t.kind())
	}
	if mayTree && t.beats(least, of, schedule.TreeWork(k, t.kind())) {
		a = schedule.Auto
	}
	return a, byCosts
}
