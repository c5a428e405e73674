package nic

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// speeds asks drivers for the speeds of interfaces, by ethtool's ioctl.
type speeds int // a socket

func openSpeeds() (speeds, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	return speeds(fd), err
}

func (s speeds) close() { _ = unix.Close(int(s)) }

// ethtoolSettings is Linux's struct ethtool_cmd.
type ethtoolSettings struct {
	command   uint32
	_, _      uint32 // supported and advertised modes
	speed     uint16 // Mbit/s, the low half
	_         [6]byte
	_, _      uint32 // packets before an interrupt
	speedHigh uint16
	_         [2]byte
	_         uint32 // the partner's modes
	_         [2]uint32
}

// ethtoolRequest is Linux's struct ifreq with a pointer.
type ethtoolRequest struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte
}

const (
	ethtoolGet   = 1 // ETHTOOL_GSET
	speedUnknown = 1<<32 - 1
)

// of returns the speed of an interface in bit/s; zero if its driver reports none.
func (s speeds) of(name string) uint64 {
	if len(name) >= unix.IFNAMSIZ {
		return 0
	}
	settings := &ethtoolSettings{command: ethtoolGet}
	request := &ethtoolRequest{data: unsafe.Pointer(settings)}
	copy(request.name[:], name)
	var pin runtime.Pinner // the kernel follows a pointer within the request
	pin.Pin(settings)
	defer pin.Unpin()
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(s), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(request))); e != 0 {
		return 0 // many have none
	}
	mbit := uint64(settings.speedHigh)<<16 | uint64(settings.speed)
	if mbit == speedUnknown {
		return 0
	}
	return mbit * 1_000_000
}
