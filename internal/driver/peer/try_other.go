//go:build !linux

package peer

import "net"

// TryWriter is for kernels where a write can be tried.
type TryWriter struct{}

// NewTryWriter returns nil: it cannot be done here.
func NewTryWriter(net.Conn) *TryWriter { return nil }

// Write does nothing.
func (*TryWriter) Write([]byte) (int, error) { return 0, nil }

// Waiter is for kernels where one can wait for bytes without reading them.
type Waiter struct{}

// NewWaiter returns nil: it cannot be done here.
func NewWaiter(net.Conn) *Waiter { return nil }

// Wait does nothing.
func (*Waiter) Wait() error { return nil }

// eager is for kernels where one can wait without memory.
type eager struct{}

func newEager(net.Conn, func() []byte, func()) *eager { return nil }

func (*eager) read() (int, error) { return 0, nil }
