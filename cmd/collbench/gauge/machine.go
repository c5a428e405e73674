package gauge

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// ErrMachine is wrapped by the errors of ReadMachine.
var ErrMachine = errors.New("cannot read what the processors did")

// Machine is what all processors of the machine did together.
type Machine struct {
	User   time.Duration `json:"user_ns"`
	System time.Duration `json:"system_ns"`  // in the kernel, for programs
	Soft   time.Duration `json:"softirq_ns"` // in the kernel, for packets that arrive, above all
	Hard   time.Duration `json:"irq_ns"`
	Idle   time.Duration `json:"idle_ns"`
	Stolen time.Duration `json:"stolen_ns"` // what the hypervisor gave to others
}

// tick is the unit of /proc/stat that programs see on every Linux.
const tick = 10 * time.Millisecond

// ReadMachine returns what the processors did since the machine was started. It
// needs Linux.
func ReadMachine() (Machine, error) {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return Machine{}, fmt.Errorf("%w: %w", ErrMachine, err)
	}
	m, err := parseMachine(f)
	return m, errors.Join(err, f.Close())
}

// parseMachine reads the line of /proc/stat that is about all processors:
//
//	cpu  user nice system idle iowait irq softirq steal guest guest_nice
func parseMachine(r io.Reader) (Machine, error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 9 || fields[0] != "cpu" {
			continue
		}
		var n [8]time.Duration
		for i := range n {
			ticks, err := strconv.ParseUint(fields[i+1], 10, 40)
			if err != nil {
				return Machine{}, fmt.Errorf("%w: %w", ErrMachine, err)
			}
			n[i] = time.Duration(ticks) * tick
		}
		return Machine{User: n[0] + n[1], System: n[2], Idle: n[3] + n[4], Hard: n[5], Soft: n[6], Stolen: n[7]}, nil
	}
	return Machine{}, fmt.Errorf("%w: /proc/stat has no line of all processors: %w", ErrMachine, errors.Join(lines.Err(), io.ErrUnexpectedEOF))
}

// Since returns what was done after an earlier reading.
func (m Machine) Since(before Machine) Machine {
	return Machine{
		m.User - before.User, m.System - before.System, m.Soft - before.Soft,
		m.Hard - before.Hard, m.Idle - before.Idle, m.Stolen - before.Stolen,
	}
}
