//go:build !linux

package nic

import "context"

// System returns the interfaces of this machine: it can report none here.
func System() Source { return system{} }

type system struct{}

// Read implements Source.
func (system) Read() ([]Interface, error) { return nil, ErrUnsupported }

// Watch implements Source.
func (system) Watch(context.Context, func()) error { return ErrUnsupported }
