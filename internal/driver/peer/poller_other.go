//go:build !linux

package peer

import (
	"net"

	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// socket and pollers are for Linux.
type (
	socket  struct{ net.Conn }
	pollers struct{}
)

func (*socket) tryVectors([][]byte) (int, error) { return 0, ErrGone }

func (*socket) readVectors([][]byte) (int, error) { return 0, ErrGone }

func (*socket) writeVectors([][]byte) (int, error) { return 0, ErrGone }

func (*pollers) close() {}

func (*pollers) starts() {}

func (*Path) detach() func() { return func() {} }

func (*Path) readSocket(*reader) error { return ErrGone }

// Drive is for Linux.
func (*Host) Drive(*runner.Event, <-chan struct{}) {}

// Wake is for Linux.
func (*Host) Wake(*runner.Event) {}
