package processor

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ReadMemory returns the machine's memory.
func ReadMemory() (Memory, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return Memory{}, fmt.Errorf("processor: %w", err)
	}
	m, err := parseMemory(f)
	return m, errors.Join(err, f.Close())
}

// parseMemory reads /proc/meminfo (proc(5)).
func parseMemory(r io.Reader) (m Memory, err error) {
	fields := map[string]*uint64{"MemTotal:": &m.Physical, "MemAvailable:": &m.Available}
	for lines := bufio.NewScanner(r); lines.Scan(); {
		var name string
		var kilobytes uint64
		if _, err := fmt.Sscanf(lines.Text(), "%s %d kB", &name, &kilobytes); err != nil {
			continue // lines of other units
		}
		if into := fields[name]; into != nil {
			*into = kilobytes << 10
			delete(fields, name)
		}
	}
	if len(fields) > 0 || m.Available > m.Physical {
		return Memory{}, fmt.Errorf("%w: /proc/meminfo has no total, or less than is available", ErrFormat)
	}
	return m, nil
}

// ReadProcess returns what this process has used.
func ReadProcess() (Process, error) {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return Process{}, fmt.Errorf("processor: %w", err)
	}
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return Process{}, fmt.Errorf("processor: %w", err)
	}
	var size, resident uint64 // pages (proc(5))
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return Process{}, fmt.Errorf("%w: /proc/self/statm: %w", ErrFormat, err)
	}
	return Process{
		User: time.Duration(used.Utime.Nano()), System: time.Duration(used.Stime.Nano()), Resident: resident * uint64(os.Getpagesize()),
	}, nil
}

// ReadBoot returns when the machine was started.
func ReadBoot() (time.Time, error) {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return time.Time{}, fmt.Errorf("processor: %w", err)
	}
	at, err := parseBoot(f)
	return at, errors.Join(err, f.Close())
}

// parseBoot reads the line of /proc/stat (proc(5)) that begins with btime.
func parseBoot(r io.Reader) (time.Time, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20) // the line of interrupts is long
	for lines.Scan() {
		var seconds int64
		if _, err := fmt.Sscanf(lines.Text(), "btime %d", &seconds); err == nil && seconds > 0 {
			return time.Unix(seconds, 0), nil
		}
	}
	return time.Time{}, fmt.Errorf("%w: /proc/stat has no time of the start: %w", ErrFormat, errors.Join(lines.Err(), io.ErrUnexpectedEOF))
}
