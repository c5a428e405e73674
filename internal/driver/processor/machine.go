package processor

// Memory is what the machine has, in bytes.
type Memory struct {
	Physical  uint64
	Available uint64 // to new programs, with what the system can reclaim
}
