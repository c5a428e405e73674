package main

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tributary-fabric/tributary/internal/wire"
)

const (
	chunkBytes  = 1432
	packetBytes = wire.HeaderSize + chunkBytes
	batchMost   = 44      // chunks of a batch
	batchRoom   = 1 << 16 // bytes of one
	buffer      = 8 << 20 // of a socket
	patience    = 5 * time.Second
)

// socket sends and receives batches, a system call each.
type socket struct {
	fd      int
	addr    netip.AddrPort
	forever bool // it waits without a bound

	name        unix.RawSockaddrInet4 // of the peer
	out, in     unix.Msghdr
	outControl  []byte
	inControl   []byte
	outVectors  []unix.Iovec
	inVectors   []unix.Iovec
	unconfirmed int // sends with MSG_ZEROCOPY whose memory the kernel may use still
}

func open() (*socket, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return nil, err
	}
	for _, option := range []int{unix.SO_RCVBUFFORCE, unix.SO_SNDBUFFORCE} {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, buffer); err != nil {
			return nil, fmt.Errorf("a buffer of %d bytes: %w", buffer, err)
		}
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_GRO, 1); err != nil {
		return nil, err
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		return nil, err
	}
	port := at.(*unix.SockaddrInet4).Port
	s := &socket{
		fd: fd, addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)),
		outControl: make([]byte, unix.CmsgSpace(2)), inControl: make([]byte, unix.CmsgSpace(4)),
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&s.outControl[0]))
	h.Level, h.Type = unix.SOL_UDP, unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
	for _, m := range []*unix.Msghdr{&s.out, &s.in} {
		m.Name = (*byte)(unsafe.Pointer(&s.name))
	}
	s.out.Control, s.in.Control = &s.outControl[0], &s.inControl[0]
	return s, nil
}

// toward has the socket send to a peer.
func (s *socket) toward(peer netip.AddrPort) {
	s.name = unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: peer.Addr().As4()}
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&s.name.Port))[:], peer.Port())
}

func vector(b []byte) (v unix.Iovec) {
	v.Base = unsafe.SliceData(b)
	v.SetLen(len(b))
	return v
}

// send sends outVectors as datagrams of that many bytes each.
func (s *socket) send(size, flags int) error {
	binary.NativeEndian.PutUint16(s.outControl[unix.CmsgLen(0):], uint16(size))
	s.out.Namelen = unix.SizeofSockaddrInet4
	s.out.Iov = unsafe.SliceData(s.outVectors)
	s.out.SetIovlen(len(s.outVectors))
	s.out.SetControllen(len(s.outControl))
	_, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.out)), uintptr(flags))
	if errno != 0 {
		return errno
	}
	return nil
}

// receive receives a batch into inVectors, and returns its bytes and those of each
// datagram. It offers the processor to others while there is none.
func (s *socket) receive() (bytes, size int, err error) {
	for looks := 0; ; looks++ {
		s.in.Namelen = unix.SizeofSockaddrInet4
		s.in.Iov = unsafe.SliceData(s.inVectors)
		s.in.SetIovlen(len(s.inVectors))
		s.in.SetControllen(len(s.inControl))
		n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.in)), unix.MSG_DONTWAIT)
		switch {
		case errno == 0:
			return int(n), s.segment(int(n)), nil
		case errno != unix.EAGAIN && errno != unix.EINTR:
			return 0, 0, errno
		case looks > 20:
			if err := s.wait(); err != nil {
				return 0, 0, err
			}
		}
		_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
}

// wait sleeps until something comes.
func (s *socket) wait() error {
	fds, limit := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}, int(patience/time.Millisecond)
	if s.forever {
		limit = -1
	}
	if n, err := unix.Poll(fds, limit); n == 0 && err == nil {
		return fmt.Errorf("nothing came for %v: a datagram was lost", patience)
	}
	return nil
}

// segment returns the bytes of each datagram that was received.
func (s *socket) segment(n int) int {
	if int(s.in.Controllen) >= unix.CmsgLen(4) {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&s.inControl[0]))
		if h.Level == unix.SOL_UDP && h.Type == unix.UDP_GRO {
			return int(binary.NativeEndian.Uint32(s.inControl[unix.CmsgLen(0):]))
		}
	}
	return n
}

// zerocopy has sends with MSG_ZEROCOPY lend their memory.
func (s *socket) zerocopy() error {
	return unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_ZEROCOPY, 1)
}

// confirm waits until the kernel has given back what was lent.
func (s *socket) confirm() error {
	for s.unconfirmed > 0 {
		control := make([]byte, 128)
		_, n, _, _, err := unix.Recvmsg(s.fd, nil, control, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if err == unix.EAGAIN {
			_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
			continue
		}
		if err != nil {
			return err
		}
		messages, err := unix.ParseSocketControlMessage(control[:n])
		if err != nil {
			return err
		}
		for _, m := range messages { // struct sock_extended_err: ee_info and ee_data are a range of sends
			if len(m.Data) >= 16 {
				s.unconfirmed -= int(binary.NativeEndian.Uint32(m.Data[12:]) - binary.NativeEndian.Uint32(m.Data[8:]) + 1)
			}
		}
	}
	return nil
}
