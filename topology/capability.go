package topology

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/tributary-fabric/tributary/reduce"
)

// Functions is a set of reduction functions.
type Functions uint32

// FunctionsOf returns the set of the functions given.
func FunctionsOf(functions ...reduce.Function) Functions { return toSet[Functions](functions) }

// AllFunctions returns the set of all functions that package reduce defines.
func AllFunctions() Functions { return allFunctions }

var allFunctions, allTypes = toSet[Functions](valid[reduce.Function]()), toSet[Types](valid[reduce.Type]())

// Has reports whether f is in the set.
func (s Functions) Has(f reduce.Function) bool { return f < 32 && s>>f&1 == 1 }

// Covers reports whether every function of need is in the set.
func (s Functions) Covers(need Functions) bool { return need&^s == 0 }

// List returns the functions of the set in ascending order.
func (s Functions) List() []reduce.Function { return toList[reduce.Function](s) }

// String returns "none", "all", or the functions' names with commas between.
func (s Functions) String() string { return setString(s.List(), s == AllFunctions()) }

// Types is a set of element types.
type Types uint32

// TypesOf returns the set of the types given.
func TypesOf(types ...reduce.Type) Types { return toSet[Types](types) }

// AllTypes returns the set of all element types that package reduce defines.
func AllTypes() Types { return allTypes }

// Has reports whether t is in the set.
func (s Types) Has(t reduce.Type) bool { return t < 32 && s>>t&1 == 1 }

// Covers reports whether every type of need is in the set.
func (s Types) Covers(need Types) bool { return need&^s == 0 }

// List returns the types of the set in ascending order.
func (s Types) List() []reduce.Type { return toList[reduce.Type](s) }

// String returns "none", "all", or the types' names with commas between.
func (s Types) String() string { return setString(s.List(), s == AllTypes()) }

// element is a function or a type.
type element interface {
	reduce.Function | reduce.Type
	fmt.Stringer
	Valid() bool
}

func toSet[S ~uint32, T element](list []T) (s S) {
	for _, x := range list {
		s |= 1 << x
	}
	return s
}

func toList[T element, S ~uint32](s S) []T {
	list := make([]T, 0, bits.OnesCount32(uint32(s)))
	for ; s != 0; s &= s - 1 {
		list = append(list, T(bits.TrailingZeros32(uint32(s))))
	}
	return list
}

// valid returns all that package reduce defines.
func valid[T element]() []T {
	return slices.DeleteFunc(toList[T](^uint32(0)), func(x T) bool { return !x.Valid() })
}

func setString[T element](list []T, all bool) string {
	switch {
	case len(list) == 0:
		return "none"
	case all:
		return "all"
	}
	return strings.Join(names(list), ",")
}

func names[T element](list []T) []string {
	all := make([]string, len(list))
	for i, x := range list {
		all[i] = x.String()
	}
	return all
}

// Capability is what one switch can do for collection trees. The zero value is
// a switch that only forwards: no tree uses it.
type Capability struct {
	Functions Functions // what it reduces
	Types     Types     // of which element types; a pair counts where reduce.Defined
	Slots     int       // chunks that it can hold at once, over all groups
	Children  int       // most children that it can serve in one tree
	Chunk     int       // largest payload of a packet that it can reduce, in bytes
	Window    int       // largest window of a tree that its queues bear, in chunks; 0: any
	Speed     Speed     // at which it reduces
	Plain     bool      // it takes no packets that are authenticated or encrypted
}

// The capability of a switch of which nothing else is said.
const (
	DefaultSlots    = 32768 // those of 64 trees with windows of 256
	DefaultChildren = 64
	// DefaultChunk fills a frame of 9,000 bytes: less IPv4, UDP and the
	// data plane's header, down to a multiple of the largest element.
	DefaultChunk = 8928
)

// DefaultCapability returns the capability of a switch of which nothing else
// is said: every function and type, DefaultSlots, DefaultChildren and
// DefaultChunk.
func DefaultCapability() Capability {
	return Capability{
		Functions: AllFunctions(), Types: AllTypes(),
		Slots: DefaultSlots, Children: DefaultChildren, Chunk: DefaultChunk,
	}
}

// CanReduce reports whether a switch of this capability can serve on any tree.
// A switch without functions or types still serves collectives that only copy.
func (c Capability) CanReduce() bool { return c.Slots > 0 && c.Children > 0 && !c.Speed.None() }

// maxCapability bounds the numbers of a capability; what is above it is a typing
// error, and sums of anything below it cannot overflow.
const maxCapability = 1 << 30

// ErrCapability is wrapped by every error about a capability out of range.
var ErrCapability = errors.New("invalid switch capability")

// Validate reports what is out of range in c.
func (c Capability) Validate() error {
	if unknown := c.Functions &^ AllFunctions(); unknown != 0 {
		return fmt.Errorf("functions %#x are not defined: %w", uint32(unknown), ErrCapability)
	}
	if unknown := c.Types &^ AllTypes(); unknown != 0 {
		return fmt.Errorf("types %#x are not defined: %w", uint32(unknown), ErrCapability)
	}
	for _, n := range []struct {
		name  string
		value int
	}{{"slots", c.Slots}, {"children", c.Children}, {"chunk", c.Chunk}, {"window", c.Window}} {
		if n.value < 0 || n.value > maxCapability {
			return fmt.Errorf("%s = %d is not within 0 and %d: %w", n.name, n.value, maxCapability, ErrCapability)
		}
	}
	if err := c.Speed.Validate(); err != nil {
		return fmt.Errorf("%w: %w", err, ErrCapability)
	}
	return nil
}
