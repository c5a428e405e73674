package hostlib

import (
	"fmt"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// GroupOption changes the options of a communicator. All members must give the
// same.
type GroupOption func(*groupOptions)

// groupOptions are what a communicator's operations are limited to, so that switches
// which can do less than everything may carry it.
type groupOptions struct {
	functions    topology.Functions
	types        topology.Types // of the members' vectors
	blockFloat   bool
	compressed   reduce.Type // to which packets carry sums of float32; NoType: as they are
	reproducible bool
	purpose      pathsel.Purpose

	algorithms []Algorithm // of hosts, by which operations are to run
	onTree     bool        // operations run over the communicator's tree wherever they can
	noSwitches bool        // which is that of hosts

	stripes, roots int // wanted; 0: the option was not given; stripes may be PerRail

	protection wire.Protection // of packets to and from switches
}

// Authenticated has all packets of the communicator's trees of switches carry a MAC, by a key that a
// child and its parent alone have, which changes with the tree: what anybody else sends or changes on
// the way is dropped, and counted. The manager gives the communicator switches that can check this; on
// others it stays on hosts, whose connections are authenticated by TLS, and Explain says so.
// docs/trust.md reports what it protects from, docs/benchmarks.md what it costs. A packet has room for
// up to 39 bytes less.
func Authenticated() GroupOption {
	return func(t *groupOptions) { t.protection = max(t.protection, wire.Authenticated) }
}

// Encrypted is Authenticated, and encrypts the vectors in the packets between a child and its
// parent. Switches see them, since they reduce them.
func Encrypted() GroupOption { return func(t *groupOptions) { t.protection = wire.Encrypted } }

// chunkBytes returns the largest payload of a packet of which, unprotected, it would be most.
func (t groupOptions) chunkBytes(most int) int {
	if t.protection == wire.Plain {
		return most
	}
	return max(16, (most-t.protection.Overhead())&^15)
}

// chunkBytes returns the largest payload of a packet.
func (c *Communicator) chunkBytes() int { return c.options.chunkBytes(c.host.cfg.ChunkBytes) }

// OnlyFunctions limits the communicator's reductions to these functions, so that it can
// use switches that support only these. The default is all.
func OnlyFunctions(functions ...reduce.Function) GroupOption {
	return func(t *groupOptions) { t.functions = topology.FunctionsOf(functions...) }
}

// OnlyTypes limits the communicator's vectors to these element types.
func OnlyTypes(types ...reduce.Type) GroupOption {
	return func(t *groupOptions) { t.types = topology.TypesOf(types...) }
}

// BlockFloat makes sums of float32 run in block floating point: as integers with one
// exponent for each packet, which switches without floating-point addition can add. With
// n members, an element differs from the exact sum, before rounding to float32, by less
// than n * n / (2^30 - n/4) of the largest magnitude that any member has in the same
// packet, or less than n * 2^-127 if that is more; a NaN or an infinity makes the whole
// packet NaN. docs/functions.md has the definition. Outcome reports such operations.
// Other functions and types do not change.
func BlockFloat() GroupOption { return func(t *groupOptions) { t.blockFloat = true } }

// Expect declares the communicator's main collective and the length of its vectors in
// bytes; 0: unknown. The manager balances groups by load, and keeps to trees that are good
// for what is declared: wide ones for long vectors, short ones for short vectors and for
// barriers. If hosts are faster than any
// tree, the communicator stays on hosts, and Transport says so. Other operations and
// lengths work as well.
func Expect(collective pathsel.Collective, bytes int64) GroupOption {
	return func(t *groupOptions) { t.purpose.Collective, t.purpose.Bytes = collective, bytes }
}

// ChooseBy makes the manager choose the tree by a criterion, whatever Expect says.
func ChooseBy(c pathsel.Criterion) GroupOption {
	return func(t *groupOptions) { t.purpose.Criterion, t.purpose.Weights = c, pathsel.Weights{} }
}

// ChooseByWeights makes the manager choose the tree by several criteria.
func ChooseByWeights(w pathsel.Weights) GroupOption {
	return func(t *groupOptions) { t.purpose.Criterion, t.purpose.Weights = pathsel.ByFunction, w }
}

// keepsTree reports whether what can run over the communicator's tree always does.
func (t groupOptions) keepsTree() bool {
	return t.onTree || t.blockFloat || t.compressed != reduce.NoType || t.wantsMultitree()
}

// wantsMultitree reports whether the communicator is to have several trees.
func (t groupOptions) wantsMultitree() bool { return t.mostStripes() > 1 || t.roots > 1 }

// mostStripes returns how many stripes there are at the most.
func (t groupOptions) mostStripes() int {
	if t.stripes == PerRail {
		return MaxRails
	}
	return t.stripes
}

// single returns the options of one tree of several.
func (t groupOptions) single() groupOptions {
	t.stripes, t.roots = 0, 0
	return t
}

// blockTypes is what no vector of a member's is made of: it is a form of float32.
const blockTypes = topology.Types(1 << reduce.Block32)

func optionsOf(options []GroupOption) groupOptions {
	t := groupOptions{functions: topology.AllFunctions(), types: topology.AllTypes() &^ blockTypes}
	for _, o := range options {
		o(&t)
	}
	return t
}

func (t groupOptions) validate() error {
	if t.types&blockTypes != 0 {
		return fmt.Errorf("%w: no vector is of the type %v: BlockFloat allows it for sums of %v", ErrArgument, reduce.Block32, reduce.Float32)
	}
	if err := t.validateCoding(); err != nil {
		return err
	}
	if err := t.purpose.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrArgument, err)
	}
	for _, n := range []int{t.mostStripes(), t.roots} {
		if n < 0 || n > manager.MaxBundle {
			return fmt.Errorf("%w: %d trees, want 0 to %d", ErrArgument, n, manager.MaxBundle)
		}
	}
	for _, a := range t.algorithms {
		if a >= Algorithm(schedule.Algorithms) {
			return fmt.Errorf("%w: %s", ErrArgument, a)
		}
	}
	if len(t.algorithms) > 0 && (t.wantsMultitree() || t.onTree) {
		return fmt.Errorf("%w: OnHosts cannot be combined with OnTree, OnTreeOfHosts, Stripes and Roots", ErrArgument)
	}
	if t.noSwitches && t.wantsMultitree() {
		return fmt.Errorf("%w: OnTreeOfHosts cannot be combined with Stripes and Roots", ErrArgument)
	}
	if t.mostStripes() > 1 && t.roots > 1 {
		return fmt.Errorf("%w: Stripes and Roots cannot be combined", ErrArgument)
	}
	return nil
}

// blocks reports whether o runs in block floating point.
func (t groupOptions) blocks(o *session.Operation) bool {
	return t.blockFloat && o.Function == reduce.Sum && o.Element == reduce.Float32
}

// allow reports what the options exclude.
func (t groupOptions) allow(f reduce.Function, e reduce.Type) error {
	if f != reduce.NoFunction && !t.functions.Has(f) {
		if !f.Valid() {
			return fmt.Errorf("%w: there is no %v", ErrArgument, f)
		}
		return fmt.Errorf("%w: OnlyFunctions of the communicator has %v, not %v", ErrArgument, t.functions, f)
	}
	if e != reduce.NoType && !t.types.Has(e) {
		return fmt.Errorf("%w: OnlyTypes of the communicator has %v, not %v", ErrArgument, t.types, e)
	}
	return nil
}
