package kernel

import "github.com/cilium/ebpf"

// Program returns the program, for its statistics.
func (o *Offload) Program() *ebpf.Program { return o.program }
