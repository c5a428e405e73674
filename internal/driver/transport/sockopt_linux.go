package transport

import (
	"math"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// yield offers the processor to other threads of the machine.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// Of SO_MEMINFO's numbers (linux/sock_diag.h), the one of dropped packets.
const (
	memInfoDrops = 8
	memInfoVars  = 9
)

// overflowedAt returns how many datagrams found a socket's receive buffer full,
// and whether the system reports.
func overflowedAt(fd int) (uint64, bool) {
	var info [memInfoVars]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	return uint64(info[memInfoDrops]), errno == 0
}

// enlarge asks for a receive buffer of size bytes, beyond the system's limit
// where this process may.
func enlarge(fd, size int) error {
	// The kernel doubles what it is asked for, to account for its own.
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, size/2) == nil {
		return nil
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, size/2)
}

// enlargeSend asks for a send buffer likewise.
func enlargeSend(fd, size int) error {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, size/2) == nil {
		return nil
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, size/2)
}

// refuseUnsummed has the kernel drop datagrams without a UDP checksum, which IPv4 allows,
// and count them as it counts those that find the receive buffer full. A checksum that a
// device has yet to compute is not 0. Where filters are not allowed, they are taken.
func refuseUnsummed(fd int) {
	const checksumAt = 6 // of a UDP header, where the filter of a UDP socket begins
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: checksumAt},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K},
		{Code: unix.BPF_RET | unix.BPF_K, K: math.MaxUint32},
	}
	_ = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]})
}

// The same of a socket that the net package has.

func granted(socket *net.UDPConn) (size int) {
	_ = control(socket, func(fd int) (err error) {
		size, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
		return err
	})
	return size
}

func overflowed(socket *net.UDPConn) (n uint64, isKnown bool) {
	_ = control(socket, func(fd int) error {
		n, isKnown = overflowedAt(fd)
		return nil
	})
	return n, isKnown
}

func control(socket *net.UDPConn, f func(fd int) error) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = f(int(fd)) }); err != nil {
		return err
	}
	return failed
}
