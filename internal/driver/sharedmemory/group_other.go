//go:build !linux

package sharedmemory

import "context"

// MaxName is the length of names of offers, at most.
const MaxName = 64

// Group is one process's end of the memory.
type Group struct{ *Board }

// Offer is memory that the first process offers to the others.
type Offer struct{}

// MakeOffer returns ErrUnsupported.
func MakeOffer(Shape) (*Offer, error) { return nil, ErrUnsupported }

// Name returns nothing.
func (*Offer) Name() string { return "" }

// Accept returns ErrUnsupported.
func (*Offer) Accept(context.Context) (*Group, error) { return nil, ErrUnsupported }

// Close does nothing.
func (*Offer) Close() {}

// Take returns ErrUnsupported.
func Take(context.Context, string, Shape, int) (*Group, error) { return nil, ErrUnsupported }

// Watch does nothing.
func (*Group) Watch(func(process int)) {}

// Close does nothing.
func (*Group) Close() error { return nil }
