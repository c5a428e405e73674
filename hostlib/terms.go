package hostlib

import (
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// GroupOption changes the terms of a communicator. All members must give the
// same.
type GroupOption func(*terms)

// terms are what a communicator's operations are limited to, so that switches
// which can do less than everything may carry it.
type terms struct {
	functions topology.Functions
	types     topology.Types
}

// OnlyFunctions limits the communicator's reductions to these functions; by
// default all are possible, and only switches that can do all of them are used.
func OnlyFunctions(functions ...reduce.Function) GroupOption {
	return func(t *terms) { t.functions = topology.FunctionsOf(functions...) }
}

// OnlyTypes limits the communicator's vectors to these element types.
func OnlyTypes(types ...reduce.Type) GroupOption {
	return func(t *terms) { t.types = topology.TypesOf(types...) }
}

func termsOf(options []GroupOption) terms {
	t := terms{functions: topology.AllFunctions(), types: topology.AllTypes()}
	for _, o := range options {
		o(&t)
	}
	return t
}

// allow reports what of o the terms exclude.
func (t terms) allow(o *session.Operation) error {
	if o.Function != reduce.NoFunction && !slices.Contains(t.functions.List(), o.Function) {
		return fmt.Errorf("%w: the communicator was made for the functions %v, not for %v", ErrArgument, t.functions, o.Function)
	}
	if o.Element != reduce.NoType && !slices.Contains(t.types.List(), o.Element) {
		return fmt.Errorf("%w: the communicator was made for the types %v, not for %v", ErrArgument, t.types, o.Element)
	}
	return nil
}
