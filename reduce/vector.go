package reduce

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// Element is the constraint of the Go types that are elements of vectors. Each
// of them is one Type; see TypeOf.
type Element interface {
	int32 | int64 | uint32 | uint64 | float32 | float64 | F16 | BF16
}

// TypeOf returns the Type whose elements are values of T.
func TypeOf[T Element]() Type {
	switch any(*new(T)).(type) {
	case int32:
		return Int32
	case int64:
		return Int64
	case uint32:
		return Uint32
	case uint64:
		return Uint64
	case float32:
		return Float32
	case float64:
		return Float64
	case F16:
		return Float16
	default:
		return BFloat16
	}
}

// littleEndian reports whether this machine's memory has the order of vectors.
// It is a variable so that tests can run what other machines would.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// LittleEndian reports whether this machine keeps elements in memory as they
// lie in vectors, so that the bytes which Bytes returns are a vector.
func LittleEndian() bool { return littleEndian }

// Bytes returns the memory of v, len(v) times the size of T bytes, without a
// copy: who writes to one writes to the other. They are a vector, fit for
// kernels and for the wire, where LittleEndian is true; on other machines the
// way from slices to vectors and back is Put and Get.
func Bytes[T Element](v []T) []byte { return memory(v) }

// Put writes the elements of v into dst as a vector, on any machine. It panics
// if dst is not exactly len(v) times the size of T long.
func Put[T Element](dst []byte, v []T) {
	src := memory(v)
	checkLength(len(dst), len(src))
	reorder(dst, src, int(unsafe.Sizeof(*new(T))))
}

// Get reads the vector src into v, on any machine. It panics if src is not
// exactly len(v) times the size of T long.
func Get[T Element](v []T, src []byte) {
	dst := memory(v)
	checkLength(len(src), len(dst))
	reorder(dst, src, int(unsafe.Sizeof(*new(T))))
}

func checkLength(vector, slice int) {
	if vector != slice {
		panic(fmt.Sprintf("reduce: a vector of %d bytes for elements of %d bytes", vector, slice))
	}
}

// memory returns the bytes that v lies in.
func memory[T Element](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(*new(T))))
}

// aligned reports whether b can be viewed as elements of type T: whether this
// machine's order is that of vectors and b begins at a multiple of T's size.
func aligned[T Element](b []byte) bool {
	return littleEndian && uintptr(unsafe.Pointer(unsafe.SliceData(b)))&(unsafe.Sizeof(*new(T))-1) == 0
}

// view returns b, for which aligned must be true, as elements of type T.
func view[T Element](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(*new(T))))
}

// reorder copies src, elements of size bytes each, to dst, and changes their
// order from that of vectors to that of this machine or, which is the same
// change, back.
func reorder(dst, src []byte, size int) {
	if littleEndian {
		copy(dst, src)
		return
	}
	switch size {
	case 2:
		for i := 0; i+2 <= len(src); i += 2 {
			binary.NativeEndian.PutUint16(dst[i:], binary.LittleEndian.Uint16(src[i:]))
		}
	case 4:
		for i := 0; i+4 <= len(src); i += 4 {
			binary.NativeEndian.PutUint32(dst[i:], binary.LittleEndian.Uint32(src[i:]))
		}
	default:
		for i := 0; i+8 <= len(src); i += 8 {
			binary.NativeEndian.PutUint64(dst[i:], binary.LittleEndian.Uint64(src[i:]))
		}
	}
}
