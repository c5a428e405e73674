package transport

import (
	"encoding/binary"
	"errors"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sleep waits for a socket that the Go runtime does not know of: by a system
// call, or by the runtime's poller for a descriptor of epoll, which is ready
// when the socket is, but only while somebody parks.
type sleep struct {
	event  int      // ends every sleep: an eventfd
	watch  *os.File // of epoll, of the socket and event
	raw    syscall.RawConn
	look   func(fd uintptr) bool // whether watch is ready
	events [2]unix.EpollEvent
	heed   func(fd uintptr) // sets interest
	// interest is what watch heeds of the socket: nothing, but while somebody
	// parks.
	interest unix.EpollEvent

	fds   [2]unix.PollFd
	limit unix.Timespec
	until time.Time // of park
}

// init makes what it takes to wait for fd.
func (d *sleep) init(fd int) (err error) {
	if d.event, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		return err
	}
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err == nil {
		err = errors.Join(
			unix.SetNonblock(epoll, true), // has the runtime poll it
			unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, d.event, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(d.event)}),
			unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Fd: int32(fd)}))
		d.watch = os.NewFile(uintptr(epoll), "epoll")
	}
	if err == nil {
		err = d.watch.SetReadDeadline(time.Time{}) // fails if the runtime cannot poll it
	}
	if err == nil {
		d.raw, err = d.watch.SyscallConn()
	}
	if err != nil {
		return errors.Join(err, d.close())
	}
	d.interest.Fd = int32(fd)
	d.heed = func(epoll uintptr) { _ = unix.EpollCtl(int(epoll), unix.EPOLL_CTL_MOD, fd, &d.interest) }
	d.look = func(epoll uintptr) bool {
		n, err := unix.EpollWait(int(epoll), d.events[:], 0)
		return n > 0 || err != nil && err != unix.EINTR
	}
	return nil
}

// pollSleep waits in a system call, for at most so long. The runtime knows of it, and
// gives the processor to other goroutines if there are any.
func (d *sleep) pollSleep(fd int, limit time.Duration) {
	d.limit = unix.NsecToTimespec(int64(limit))
	d.fds = [2]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(d.event), Events: unix.POLLIN}}
	_, _, _ = unix.Syscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&d.fds)), uintptr(len(d.fds)),
		uintptr(unsafe.Pointer(&d.limit)), 0, 0, 0) // whatever it says, the socket is looked at next
	if d.fds[1].Revents != 0 {
		d.reset()
	}
}

// park waits in the runtime's poller.
func (d *sleep) park() error {
	if err := d.watch.SetReadDeadline(d.until); err != nil {
		return err
	}
	d.interest.Events = unix.EPOLLIN
	if err := d.raw.Control(d.heed); err != nil {
		return err
	}
	err := d.raw.Read(d.look)
	d.reset()
	d.interest.Events = 0
	if failed := d.raw.Control(d.heed); err == nil {
		err = failed
	}
	return err
}

// wake ends a sleep.
func (d *sleep) wake() {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], 1)
	_, _ = unix.Write(d.event, b[:]) // fails if it was done two billion times
}

// reset forgets what wake did.
func (d *sleep) reset() {
	var b [8]byte
	_, _ = unix.Read(d.event, b[:]) // fails if it did nothing
}

func (d *sleep) close() error {
	err := unix.Close(d.event)
	if d.watch != nil {
		err = errors.Join(err, d.watch.Close())
	}
	return err
}
