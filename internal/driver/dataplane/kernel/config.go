package kernel

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// ErrConfig is wrapped by the errors of Config.Validate, ErrUnsupported by those of New on
// systems that cannot run the program.
var (
	ErrConfig      = errors.New("kernel: invalid configuration")
	ErrUnsupported = errors.New("kernel: programs in the kernel run on little-endian Linux only")
)

// DefaultMemory bounds the kernel memory of all epochs, in bytes.
const DefaultMemory = 1 << 30

// Config is what an Offload needs to know.
type Config struct {
	Data       netip.Addr // the address of the trees' sockets, as in soft.Config
	Memory     int        // bound of the kernel memory of all epochs, in bytes; 0: DefaultMemory
	Interfaces nic.Source
	Log        *slog.Logger
}

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	switch {
	case !c.Data.IsValid():
		return fmt.Errorf("%w: no data address", ErrConfig)
	case c.Memory < 0:
		return fmt.Errorf("%w: %d bytes of memory", ErrConfig, c.Memory)
	case c.Interfaces == nil || c.Log == nil:
		return fmt.Errorf("%w: no interfaces, or no log", ErrConfig)
	}
	return nil
}

// Reducer implements soft.Accelerator.
func (*Offload) Reducer() topology.Reducer {
	r := topology.Reducer{Pipeline: topology.Kernel}
	all := topology.FunctionsOf(reduce.Sum, reduce.Product, reduce.Min, reduce.Max,
		reduce.BAnd, reduce.BOr, reduce.BXor, reduce.LAnd, reduce.LOr, reduce.LXor)
	for _, t := range []reduce.Type{reduce.Int32, reduce.Int64, reduce.Uint32, reduce.Uint64} {
		r.Own[t] = all
	}
	r.Own[reduce.Block32] = topology.FunctionsOf(reduce.Sum)
	return r
}
