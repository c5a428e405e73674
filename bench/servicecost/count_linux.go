//go:build linux

package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// A cost is what a process has open.
type cost struct{ listeners, connections, udp, goroutines int }

// count counts the process's sockets and goroutines. Connections have both ends in it.
func count() (c cost, err error) {
	own := map[string]bool{}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return c, err
	}
	for _, fd := range fds {
		if target, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(target, "socket:[") {
			own[strings.Trim(target, "socket:[]")] = true
		}
	}
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
		f, err := os.Open("/proc/self/net/" + table)
		if err != nil {
			return c, err
		}
		s := bufio.NewScanner(f)
		for s.Scan() {
			fields := strings.Fields(s.Text())
			if len(fields) < 10 || !own[fields[9]] {
				continue
			}
			switch {
			case strings.HasPrefix(table, "udp"):
				c.udp++
			case fields[3] == "0A":
				c.listeners++
			default:
				c.connections++
			}
		}
		f.Close()
	}
	c.goroutines = runtime.NumGoroutine()
	return c, nil
}

func (c cost) String() string {
	return fmt.Sprintf("%d listeners, %d ends of connections, %d UDP sockets, %d goroutines", c.listeners, c.connections, c.udp, c.goroutines)
}
