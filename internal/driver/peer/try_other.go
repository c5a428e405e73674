//go:build !linux

package peer

import "net"

// tryWriter is for kernels where a write can be tried.
type tryWriter struct{}

func newTryWriter(net.Conn) *tryWriter { return nil }

// Write does nothing.
func (*tryWriter) Write([]byte) (int, error) { return 0, nil }

// eager is for kernels where one can wait without memory.
type eager struct{}

func newEager(net.Conn, func() []byte, func()) *eager { return nil }

func (*eager) read() (int, error) { return 0, nil }
