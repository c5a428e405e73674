package arp

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/mdlayher/packet"
	"golang.org/x/sys/unix"
)

// packetSocket is a packet socket of all interfaces. Package packet does not say which one
// a frame came from.
type packetSocket struct {
	packets *packet.Conn
	fd      syscall.RawConn
}

func open() (socket, error) {
	c, err := packet.Listen(&net.Interface{}, packet.Raw, etherType, nil)
	if err != nil {
		return nil, fmt.Errorf("arp: a packet socket, which takes CAP_NET_RAW: %w", err)
	}
	fd, err := c.SyscallConn()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("arp: %w", err), c.Close())
	}
	return &packetSocket{c, fd}, nil
}

// receive implements socket.
func (s *packetSocket) receive(b []byte) (size, index int, err error) {
	var from unix.Sockaddr
	over := s.fd.Read(func(fd uintptr) bool {
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
	over := s.fd.Write(func(fd uintptr) bool {
		err = unix.Sendto(int(fd), frame, unix.MSG_DONTWAIT, &unix.SockaddrLinklayer{Ifindex: index})
		return true // a full queue loses it
	})
	return errors.Join(over, err)
}

// close implements socket.
func (s *packetSocket) close() { _ = s.packets.Close() }
