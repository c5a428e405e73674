//go:build !linux

package peer

import "net"

// newKernelWriter is for kernels where a write can be tried.
func newKernelWriter(net.Conn) tryWriter { return nil }

// eager is for kernels where one can wait without memory.
type eager struct{}

func newEager(net.Conn, func() []byte, func()) *eager { return nil }

func (*eager) read() (int, error) { return 0, nil }
