package arp

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// packetSocket is a packet socket of all interfaces.
type packetSocket struct {
	file *os.File
	conn syscall.RawConn
}

func open() (socket, error) {
	const bigEndian = etherType<<8&0xff00 | etherType>>8
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, bigEndian)
	if err != nil {
		return nil, fmt.Errorf("arp: a packet socket, which takes CAP_NET_RAW: %w", err)
	}
	file := os.NewFile(uintptr(fd), "arp")
	conn, err := file.SyscallConn()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("arp: %w", err), file.Close())
	}
	return &packetSocket{file, conn}, nil
}

// receive implements socket.
func (s *packetSocket) receive(b []byte) (size, index int, err error) {
	var from unix.Sockaddr
	over := s.conn.Read(func(fd uintptr) bool {
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			size, from, err = unix.Recvfrom(int(fd), b, unix.MSG_DONTWAIT)
		}
		return !errors.Is(err, unix.EAGAIN)
	})
	if link, ok := from.(*unix.SockaddrLinklayer); ok {
		index = link.Ifindex
	}
	return size, index, errors.Join(over, err)
}

// send implements socket.
func (s *packetSocket) send(index int, frame []byte) error {
	var err error
	over := s.conn.Write(func(fd uintptr) bool {
		err = unix.Sendto(int(fd), frame, unix.MSG_DONTWAIT, &unix.SockaddrLinklayer{Ifindex: index})
		return true // a full queue loses it
	})
	return errors.Join(over, err)
}

// close implements socket.
func (s *packetSocket) close() { _ = s.file.Close() }
