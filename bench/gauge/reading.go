package gauge

import "time"

// Reading is what one process, or several together, did in a window.
type Reading struct {
	User   time.Duration `json:"user_ns"`   // processor time in the program
	System time.Duration `json:"system_ns"` // in the kernel, for the program

	Allocations    uint64 `json:"allocations"` // objects on the heap
	AllocatedBytes uint64 `json:"allocated_bytes"`
	Collections    uint64 `json:"collections"` // of garbage

	Traffic
}

// Traffic is what a process had to do with packets of trees.
type Traffic struct {
	PacketsIn  uint64 `json:"packets_in"`
	PacketsOut uint64 `json:"packets_out"`
	BytesIn    uint64 `json:"bytes_in"` // IP and UDP headers included
	BytesOut   uint64 `json:"bytes_out"`

	// System calls, by whether they read packets, wrote some, or waited.
	ReadCalls  uint64 `json:"read_calls"`
	WriteCalls uint64 `json:"write_calls"`
	WaitCalls  uint64 `json:"wait_calls"`
}

// Processor returns all processor time of r.
func (r Reading) Processor() time.Duration { return r.User + r.System }

// Packets returns the packets that were read and written.
func (t Traffic) Packets() uint64 { return t.PacketsIn + t.PacketsOut }

// Calls returns all system calls; 0: nobody counted them.
func (t Traffic) Calls() uint64 { return t.ReadCalls + t.WriteCalls + t.WaitCalls }

// Add returns the sums of t's and u's counts.
func (t Traffic) Add(u Traffic) Traffic { return Reading{Traffic: t}.Add(Reading{Traffic: u}).Traffic }

// Add returns what r and s did together.
func (r Reading) Add(s Reading) Reading { return r.with(s, func(x, y uint64) uint64 { return x + y }) }

// since returns what was done after an earlier reading; 0 of what has fallen,
// as counts do when a tree ends.
func (r Reading) since(s Reading) Reading {
	return r.with(s, func(x, y uint64) uint64 { return x - min(x, y) })
}

// with applies f to each of r's numbers and that of s.
func (r Reading) with(s Reading, f func(x, y uint64) uint64) Reading {
	times := func(x, y time.Duration) time.Duration { return time.Duration(f(uint64(x), uint64(y))) }
	return Reading{
		times(r.User, s.User), times(r.System, s.System),
		f(r.Allocations, s.Allocations), f(r.AllocatedBytes, s.AllocatedBytes), f(r.Collections, s.Collections),
		Traffic{
			f(r.PacketsIn, s.PacketsIn), f(r.PacketsOut, s.PacketsOut), f(r.BytesIn, s.BytesIn), f(r.BytesOut, s.BytesOut),
			f(r.ReadCalls, s.ReadCalls), f(r.WriteCalls, s.WriteCalls), f(r.WaitCalls, s.WaitCalls),
		},
	}
}
