package crowd

import (
	"fmt"
	"os"
)

// resident returns the bytes of this process that are in memory.
func resident() (uint64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, fmt.Errorf("crowd: %w", err)
	}
	var size, pages uint64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		return 0, fmt.Errorf("crowd: /proc/self/statm: %w", err)
	}
	return pages * uint64(os.Getpagesize()), nil
}
