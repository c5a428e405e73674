package gauge

import (
	"errors"
	"fmt"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/processor"
)

// ErrMachine is wrapped by the errors of ReadMachine.
var ErrMachine = errors.New("cannot read what the processors did")

// Machine is what all processors of the machine did together: a processor.Sum as
// reports write it.
type Machine struct {
	User   time.Duration `json:"user_ns"`
	System time.Duration `json:"system_ns"`
	Soft   time.Duration `json:"softirq_ns"`
	Hard   time.Duration `json:"irq_ns"`
	Idle   time.Duration `json:"idle_ns"`
	Stolen time.Duration `json:"stolen_ns"`
}

// ReadMachine returns what the processors did since the machine was started. It
// needs Linux.
func ReadMachine() (Machine, error) {
	sum, err := processor.ReadSum()
	if err != nil {
		return Machine{}, fmt.Errorf("%w: %w", ErrMachine, err)
	}
	return Machine(sum), nil
}

// Since returns what was done after an earlier reading.
func (m Machine) Since(before Machine) Machine {
	return Machine{
		m.User - before.User, m.System - before.System, m.Soft - before.Soft,
		m.Hard - before.Hard, m.Idle - before.Idle, m.Stolen - before.Stolen,
	}
}
