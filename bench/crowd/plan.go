package crowd

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/topology"
)

// ErrPlan is wrapped by the errors of Plan.Validate.
var ErrPlan = errors.New("crowd: invalid plan")

// Transports are how the groups may run: over a manager and its switches, or, without
// one, over hosts.
var Transports = []string{"offload", "host-tree"}

// Plan is what is measured.
type Plan struct {
	Fabric     string        // specification or file; its hosts are the members of every group
	Groups     []int         // numbers of groups, each measured by itself
	Transport  string        // one of Ways
	Bytes      []int         // of each member's vector, of float32: multiples of 4
	Iterations int           // timed operations of each size on all groups, after one that is not
	Window     uint32        // most chunks in flight, a power of two; 0: the library's default
	Slots      int           // of each switch; 0: those of the fabric
	Settle     time.Duration // rest between the forming and the reading of memory, and before each size
}

// DefaultPlan returns the plan of docs/benchmarks.md.
func DefaultPlan() Plan {
	return Plan{
		Fabric: "leaf-spine:2,2,1", Groups: []int{1, 20, 200, 1000}, Transport: Transports[0],
		Bytes: []int{8, 64 << 10}, Iterations: 5, Settle: time.Second,
	}
}

// Validate reports what is wrong with p.
func (p *Plan) Validate() error {
	switch {
	case !slices.Contains(Transports, p.Transport):
		return fmt.Errorf("%w: transport %q, want one of %s", ErrPlan, p.Transport, strings.Join(Transports, ", "))
	case len(p.Groups) == 0 || slices.Min(p.Groups) < 1 || slices.Max(p.Groups) > 1<<16:
		return fmt.Errorf("%w: %v groups, want 1 to %d", ErrPlan, p.Groups, 1<<16)
	case p.Iterations < 1 || p.Settle < 0 || p.Slots < 0:
		return fmt.Errorf("%w: %d iterations, a rest of %v, %d slots", ErrPlan, p.Iterations, p.Settle, p.Slots)
	case slices.ContainsFunc(p.Bytes, func(n int) bool { return n < 0 || n%4 != 0 }):
		return fmt.Errorf("%w: vectors of %v bytes, want multiples of 4", ErrPlan, p.Bytes)
	}
	return nil
}

// Open returns the fabric of that specification or file, with so many slots on
// each switch; 0: its own.
func Open(fabric string, slots int) (*topology.Graph, error) {
	if slots == 0 {
		return topology.Open(fabric)
	}
	e := topology.DefaultEquipment()
	e.Switch.Slots = slots
	return e.Parse(fabric)
}
