package crowd

import (
	"runtime"
	"runtime/debug"
)

// Memory is what a process has, after it has given back what it does not need.
type Memory struct {
	Resident   uint64 `json:"resident"` // bytes of the process in memory; 0: this system does not report
	Live       uint64 `json:"live"`     // bytes of objects on the heap, and of stacks
	Goroutines int    `json:"goroutines"`
}

// readMemory returns what this process has.
func readMemory() (Memory, error) {
	debug.FreeOSMemory() // collects the garbage first;
	debug.FreeOSMemory() // what pools hold goes with the second collection
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	resident, err := resident()
	return Memory{resident, m.HeapAlloc + m.StackInuse, runtime.NumGoroutine()}, err
}

// Since returns how much more it is than before; what has fallen counts as 0.
func (m Memory) Since(before Memory) Memory {
	return Memory{
		m.Resident - min(m.Resident, before.Resident), m.Live - min(m.Live, before.Live),
		m.Goroutines - min(m.Goroutines, before.Goroutines),
	}
}
