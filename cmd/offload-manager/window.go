package main

import (
	"fmt"
	"math/bits"
	"strconv"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
)

// window is a flag's number of chunks: a power of two, as groups have it.
type window uint32

// String returns the number.
func (w *window) String() string { return strconv.FormatUint(uint64(*w), 10) }

// Type names the value in the usage.
func (w *window) Type() string { return "chunks" }

// Set reads a number.
func (w *window) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || bits.OnesCount64(n) != 1 || n > switchreduce.MaxWindow {
		return fmt.Errorf("a window is a power of two up to %d", switchreduce.MaxWindow)
	}
	*w = window(n)
	return nil
}
