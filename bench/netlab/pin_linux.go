package netlab

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// pin has the thread, and the processes that it starts, run on a share of the machine's
// cores: that of one of so many hosts. Hosts share a core only where there are more hosts.
func (p *place) pin(host, hosts int) error {
	return p.do(func() error {
		var all, own unix.CPUSet
		if err := unix.SchedGetaffinity(0, &all); err != nil {
			return fmt.Errorf("netlab: %s: reading the cores: %w", p.name, err)
		}
		var cores []int
		for core := 0; len(cores) < all.Count(); core++ {
			if all.IsSet(core) {
				cores = append(cores, core)
			}
		}
		first, end := shareOf(len(cores), host, hosts)
		for _, core := range cores[first:end] {
			own.Set(core)
		}
		if err := unix.SchedSetaffinity(0, &own); err != nil {
			return fmt.Errorf("netlab: %s: cores %v: %w", p.name, cores[first:end], err)
		}
		return nil
	})
}
