package peer

import (
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// kernelWriter writes to a connection as far as the kernel takes it without waiting.
type kernelWriter struct {
	raw syscall.RawConn
	try func(fd uintptr) bool
	b   []byte
	n   int
	err error
}

// newKernelWriter returns nil for connections on which that cannot be done.
func newKernelWriter(conn net.Conn) tryWriter {
	raw := rawOf(conn)
	if raw == nil {
		return nil
	}
	w := &kernelWriter{raw: raw}
	w.try = func(fd uintptr) bool {
		w.n, w.err = unix.Write(int(fd), w.b)
		return true // once, whatever comes of it
	}
	return w
}

// rawOf returns nil for connections that are not the kernel's TCP.
func rawOf(conn net.Conn) syscall.RawConn {
	switch c := conn.(type) {
	case *socket:
		return tried{c}
	case *net.TCPConn:
		if raw, err := c.SyscallConn(); err == nil {
			return raw
		}
	}
	return nil
}

// Write returns how many bytes the kernel has taken.
func (w *kernelWriter) Write(b []byte) (int, error) {
	w.b = b
	err := w.raw.Write(w.try)
	w.b = nil
	switch {
	case err != nil:
		return 0, err
	case w.err == unix.EAGAIN || w.err == unix.EINTR:
		return 0, nil
	case w.err != nil:
		return 0, w.err
	}
	return w.n, nil
}

// eager reads what is there, and waits for it without memory to read it into.
type eager struct {
	raw  syscall.RawConn
	look func(fd uintptr) bool
	room func() []byte // memory to read into, when it is to be tried
	none func()        // there was nothing to read
	n    int
	err  error
}

// newEager returns nil for connections on which that cannot be done.
func newEager(conn net.Conn, room func() []byte, none func()) *eager {
	raw := rawOf(conn)
	if raw == nil {
		return nil
	}
	e := &eager{raw: raw, room: room, none: none}
	e.look = func(fd uintptr) bool {
		for {
			e.n, e.err = unix.Read(int(fd), e.room())
			switch e.err {
			case unix.EINTR:
			case unix.EAGAIN:
				e.none()
				return false
			default:
				return true
			}
		}
	}
	return e
}

// read waits until something is there, and reads it into room.
func (e *eager) read() (int, error) {
	if err := e.raw.Read(e.look); err != nil {
		return 0, err
	}
	switch {
	case e.err != nil:
		return 0, os.NewSyscallError("read", e.err)
	case e.n == 0:
		return 0, io.EOF
	}
	return e.n, nil
}
