package peer

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watch is a descriptor of epoll, for which one goroutine at a time waits in the Go runtime's
// poller.
type watch struct {
	file *os.File
	raw  syscall.RawConn
	look func(fd uintptr) bool // whether it is ready

	events [1]unix.EpollEvent

	fd       int
	interest unix.EpollEvent // of who calls modify
}

func newWatch() (*watch, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // has the runtime poll it
		return nil, errors.Join(err, unix.Close(fd))
	}
	w := &watch{fd: fd, file: os.NewFile(uintptr(fd), "epoll")}
	if err = w.file.SetReadDeadline(time.Time{}); err == nil { // fails if the runtime cannot poll it
		w.raw, err = w.file.SyscallConn()
	}
	if err != nil {
		return nil, errors.Join(err, w.file.Close())
	}
	w.look = func(fd uintptr) bool {
		n, err := unix.EpollWait(int(fd), w.events[:], 0)
		return n > 0 || err != nil && err != unix.EINTR
	}
	return w, nil
}

// control says which events of a descriptor make it ready.
func (w *watch) control(how, of int, events uint32) error {
	var err error
	failed := w.raw.Control(func(fd uintptr) {
		err = unix.EpollCtl(int(fd), how, of, &unix.EpollEvent{Events: events, Fd: int32(of)})
	})
	return errors.Join(failed, os.NewSyscallError("epoll_ctl", err))
}

// modify is control of a descriptor that is there, while nobody closes the watch. It allocates
// nothing.
func (w *watch) modify(of int, events uint32) error {
	w.interest = unix.EpollEvent{Events: events, Fd: int32(of)}
	return unix.EpollCtl(w.fd, unix.EPOLL_CTL_MOD, of, &w.interest)
}

// wait waits until it is ready.
func (w *watch) wait(until time.Time) error {
	if err := w.file.SetReadDeadline(until); err != nil {
		return err
	}
	return w.raw.Read(w.look)
}

// Close implements io.Closer.
func (w *watch) Close() error { return w.file.Close() }
