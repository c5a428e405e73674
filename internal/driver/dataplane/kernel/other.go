//go:build !linux

package kernel

import (
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
)

// Offload is the program, attached to the interfaces: on Linux.
type Offload struct{}

// New returns ErrUnsupported.
func New(Config) (*Offload, error) { return nil, ErrUnsupported }

// Install implements soft.Accelerator.
func (*Offload) Install(uint16, *switchreduce.Config) (switchreduce.FastPath, error) {
	return nil, ErrUnsupported
}

// Begin implements soft.Accelerator.
func (*Offload) Begin(uint16, uint32) {}

// Retire implements soft.Accelerator.
func (*Offload) Retire(uint16, uint32) {}

// Shut implements soft.Accelerator.
func (*Offload) Shut(uint16) {}

// Count implements soft.Accelerator.
func (*Offload) Count(uint16, *rpc.TreeCounters, []switchreduce.EpochTraffic) {}

// Close detaches the program.
func (*Offload) Close() {}
