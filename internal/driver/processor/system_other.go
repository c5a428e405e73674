//go:build !linux

package processor

import "time"

// Read returns what this machine's processors have spent on average: it can report
// nothing here.
func Read() (Time, error) { return Time{}, ErrUnsupported }

// ReadSum returns what this machine's processors have spent together: it can report
// nothing here.
func ReadSum() (Sum, error) { return Sum{}, ErrUnsupported }

// ReadMemory returns the machine's memory: it can report nothing here.
func ReadMemory() (Memory, error) { return Memory{}, ErrUnsupported }

// ReadBoot returns when the machine was started: it can report nothing here.
func ReadBoot() (time.Time, error) { return time.Time{}, ErrUnsupported }

// ReadProcess returns what this process has used: it can report nothing here.
func ReadProcess() (Process, error) { return Process{}, ErrUnsupported }
