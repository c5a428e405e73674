package transport

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Control messages are in the order of bytes of the machine.

func putHeader(b []byte, level, kind, length int) {
	h := (*unix.Cmsghdr)(unsafe.Pointer(unsafe.SliceData(b)))
	h.Level, h.Type = int32(level), int32(kind)
	h.SetLen(length)
}

func header(b []byte) (level, kind int) {
	h := (*unix.Cmsghdr)(unsafe.Pointer(unsafe.SliceData(b)))
	return int(h.Level), int(h.Type)
}

func putUint16(b []byte, x uint16) { binary.NativeEndian.PutUint16(b, x) }
func getUint32(b []byte) uint32    { return binary.NativeEndian.Uint32(b) }
