package process

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
)

// ErrMemory: what was asked for does not fit into the memory of this machine.
var ErrMemory = errors.New("not enough memory")

// Vectors are those that the members of a group hold in this machine at once.
type Vectors struct {
	Members int
	Bytes   int // of each vector
	Each    int // vectors of a member
}

// CheckMemory returns an error if the vectors alone need more memory than this
// machine has free, as far as it says: the system would end this process, or
// another, in the middle.
func CheckMemory(v Vectors) error {
	free, known := freeMemory()
	needed := float64(v.Members) * float64(v.Bytes) * float64(v.Each)
	if !known || needed <= float64(free) {
		return nil
	}
	const gib = 1 << 30
	return fmt.Errorf("%w: %d members with %d vectors of %d bytes each take %.1f GiB, and this machine has %.1f GiB free; take shorter vectors or fewer hosts",
		ErrMemory, v.Members, v.Each, v.Bytes, needed/gib, float64(free)/gib)
}

// freeMemory returns the bytes that processes can still have, where the system is
// Linux and says so.
func freeMemory() (bytes uint64, known bool) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "MemAvailable:"); ok {
			_, err := fmt.Sscanf(rest, "%d kB", &bytes)
			return bytes << 10, err == nil
		}
	}
	return 0, false
}
