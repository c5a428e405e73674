package hostlib

import (
	"fmt"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/pathsel"
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

// algorithm returns that of a call, and whether it is chosen by the policy. Auto: it runs over the
// communicator's tree, which mayTree permits.
func (c *Communicator) algorithm(k *schedule.Call, mayTree bool) (a schedule.Algorithm, isChosen bool) {
	for _, wanted := range c.options.algorithms {
		switch wanted := schedule.Algorithm(wanted); {
		case wanted == schedule.Auto:
			a, _ = schedule.Choose(k, c.policy().costs)
			return a, true
		case schedule.Can(k, wanted):
			return wanted, false
		}
	}
	if mayTree && (len(c.options.algorithms) > 0 || c.options.keepsTree() || c.processes != nil || c.sub.of != nil || k.Size == 1) {
		return schedule.Auto, false
	}
	t := c.policy()
	a, least := schedule.Choose(k, t.costs)
	if mayTree && t.switches && !t.measured { // what is built in says nothing of the fabric's switches
		return schedule.Auto, true
	}
	if mayTree {
		if took, _ := t.tree(k); took <= least {
			return schedule.Auto, true
		}
	}
	return a, true
}

// tree returns how long a call takes over the communicator's tree.
func (t *policy) tree(k *schedule.Call) (time.Duration, pathsel.Kind) {
	kind := pathsel.ByHostTree
	if t.switches {
		kind = pathsel.BySwitches
	}
	w := schedule.TreeWork(k, kind)
	return t.costs.Time(k.Collective.Family(), kind, &w), kind
}

// reasons are Outcome.Reason of operations by algorithms of hosts: of those that OnHosts names, and
// of those that are chosen.
var reasons = func() (r [2][schedule.Algorithms]string) {
	for a := range schedule.Algorithms {
		r[0][a] = "by an algorithm of hosts: " + a.String()
		r[1][a] = r[0][a] + ", the fastest way by the cost model"
	}
	return r
}()
