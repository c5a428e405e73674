package processor

import "time"

// Memory is what the machine has, in bytes.
type Memory struct {
	Physical  uint64
	Available uint64 // to new programs, with what the system can reclaim
}

// Process is what this process has used.
type Process struct {
	User, System time.Duration // in itself, and in the kernel
	Resident     uint64        // bytes of memory
}
