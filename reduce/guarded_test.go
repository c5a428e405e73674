package reduce

import (
	"bytes"
	"unsafe"
)

// A guarded vector lies at a chosen alignment between bytes that must not
// change.
type guarded struct {
	vector []byte
	before []byte
	after  []byte
}

const (
	guard     = 0xa5
	guardSize = 32
)

// place copies v into memory that begins at align modulo 16.
func place(v []byte, align int) guarded {
	whole := bytes.Repeat([]byte{guard}, len(v)+2*guardSize+16)
	start := guardSize
	for uintptr(unsafe.Pointer(&whole[start]))%16 != uintptr(align) {
		start++
	}
	end := start + len(v)
	copy(whole[start:], v)
	return guarded{whole[start:end:end], whole[:start], whole[end:]}
}

// intact reports whether no byte around the vector has changed.
func (g guarded) intact() bool {
	return bytes.Count(g.before, []byte{guard}) == len(g.before) &&
		bytes.Count(g.after, []byte{guard}) == len(g.after)
}
